"""Networks with named stages and a feature map, their heads, and a bridge to other libraries' networks."""

from ._base import HeadFactory, Network, NormFactory
from .bridge import TorchNetwork, from_torch, zoo_text
from .create import create_model
from .heads.causal import CausalHead, causal_logits
from .heads.cosine import CosineHead, cosine_logits
from .heads.dropout import DropoutHead
from .heads.linear import LinearHead
from .heads.meta_embedding import MetaEmbeddingHead, embed_with_memory
from .heads.planar import PlanarHead
from .networks.allcnnc import AllCNNC
from .networks.cifar_resnet import CifarResNet, resnet32
from .networks.cnn_small import SmallCNN
from .networks.resnet import ResNet, resnet18, resnet50
from .networks.resnet12 import ResNet12
from .networks.wide_resnet import WideResNet, wrn_16_8

__all__ = [
    "AllCNNC",
    "CausalHead",
    "CifarResNet",
    "CosineHead",
    "DropoutHead",
    "HeadFactory",
    "LinearHead",
    "MetaEmbeddingHead",
    "Network",
    "NormFactory",
    "PlanarHead",
    "ResNet",
    "ResNet12",
    "SmallCNN",
    "TorchNetwork",
    "WideResNet",
    "causal_logits",
    "cosine_logits",
    "create_model",
    "embed_with_memory",
    "from_torch",
    "resnet18",
    "resnet32",
    "resnet50",
    "wrn_16_8",
    "zoo_text",
]
