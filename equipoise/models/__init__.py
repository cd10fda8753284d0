"""Networks with named stages and a feature map, their heads, and a bridge to other libraries' networks."""

from ._base import HeadFactory, Network, NormFactory
from .bridge import TorchNetwork, from_torch, zoo_text
from .create import create_model, is_pretrained
from .frozen import FrozenBody
from .heads.causal import CausalHead, causal_logits
from .heads.cosine import CosineHead, cosine_logits
from .heads.dropout import DropoutHead
from .heads.linear import LinearHead
from .heads.meta_embedding import MetaEmbeddingHead, embed_with_memory
from .heads.planar import PlanarHead
from .networks.allcnnc import AllCNNC
from .networks.cifar_resnet import CifarResNet, resnet8, resnet20, resnet32, resnet44, resnet56, resnet110
from .networks.cnn_small import SmallCNN
from .networks.densenet import DenseNet, densenet100_k12, densenet100_k24, densenet_bc100_k12
from .networks.densenet121 import DenseNet121
from .networks.efficientnet_lite import EfficientNetLite0
from .networks.mobilenet_v2 import MobileNetV2
from .networks.nasnet import NASNetA, nasnet_a_n4
from .networks.resnet import (
    ResNet,
    ResNeXt,
    resnet10,
    resnet18,
    resnet34,
    resnet50,
    resnet101,
    resnet152,
    resnext50,
)
from .networks.resnet12 import ResNet12
from .networks.shufflenet_v2 import ShuffleNetV2, shufflenet_v2_x0_5
from .networks.skipblocknet import SkipblockNet
from .networks.squeezenet import SqueezeNet
from .networks.wide_resnet import WideResNet, wrn_16_8
from .pretraining import Pretraining
from .weights import FreshHead

__all__ = [
    "AllCNNC",
    "CausalHead",
    "CifarResNet",
    "CosineHead",
    "DenseNet",
    "DenseNet121",
    "DropoutHead",
    "EfficientNetLite0",
    "FreshHead",
    "FrozenBody",
    "HeadFactory",
    "LinearHead",
    "MetaEmbeddingHead",
    "MobileNetV2",
    "NASNetA",
    "Network",
    "NormFactory",
    "PlanarHead",
    "Pretraining",
    "ResNeXt",
    "ResNet",
    "ResNet12",
    "ShuffleNetV2",
    "SkipblockNet",
    "SmallCNN",
    "SqueezeNet",
    "TorchNetwork",
    "WideResNet",
    "causal_logits",
    "cosine_logits",
    "create_model",
    "densenet100_k12",
    "densenet100_k24",
    "densenet_bc100_k12",
    "embed_with_memory",
    "from_torch",
    "is_pretrained",
    "nasnet_a_n4",
    "resnet8",
    "resnet10",
    "resnet18",
    "resnet20",
    "resnet32",
    "resnet34",
    "resnet44",
    "resnet50",
    "resnet56",
    "resnet101",
    "resnet110",
    "resnet152",
    "resnext50",
    "shufflenet_v2_x0_5",
    "wrn_16_8",
    "zoo_text",
]
