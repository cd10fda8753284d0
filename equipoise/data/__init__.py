"""Data: tasks by name, imbalance, splits, augmentation.

>>> load_task("digits", imbalance="long_tailed", ratio=20).class_counts
tensor([110,  78,  56,  40,  29,  20,  14,  10,   7,   5])
"""

from .augment import (
    Augment,
    AutoAugment,
    CropFlip,
    Crops,
    NoAugment,
    ResizedCrop,
    Rotation,
    augmented,
    autoaugment,
    centre_crop,
    crop_flip,
    crops_of,
    cutout,
    normalize,
    resize,
    resized_crop,
    rotate,
)
from .cache import cached_source, forget_cached
from .class_sizes import draw, long_tailed_counts, step_counts
from .corruptions import CORRUPTIONS, SEVERITIES, corrupt
from .decode import DataError
from .features import Features
from .frame import Frame
from .further import FurtherTest, load_further
from .image_files import ImageFiles
from .imagenet_c import imagenet_c_folders
from .load import check_task, keep_set, load_task
from .notes import data_notes
from .on_disk import OnDisk, write_images
from .place import placed_near, placeless
from .ragged import Ragged
from .shards.dataset import ShardDataset
from .shards.images import ShardImages
from .shards.index import ShardIndex, read_index
from .shards.write import index_shards, write_shards
from .sources import Source, data_folders
from .sources._tiered_pickles import unpack_tiered_imagenet
from .split import split_by_class, split_by_group
from .task import Split, Task

__all__ = [
    "CORRUPTIONS",
    "SEVERITIES",
    "Augment",
    "AutoAugment",
    "CropFlip",
    "Crops",
    "DataError",
    "Features",
    "Frame",
    "FurtherTest",
    "ImageFiles",
    "NoAugment",
    "OnDisk",
    "Ragged",
    "ResizedCrop",
    "Rotation",
    "ShardDataset",
    "ShardImages",
    "ShardIndex",
    "Source",
    "Split",
    "Task",
    "augmented",
    "autoaugment",
    "cached_source",
    "centre_crop",
    "check_task",
    "corrupt",
    "crop_flip",
    "crops_of",
    "cutout",
    "data_folders",
    "data_notes",
    "draw",
    "forget_cached",
    "imagenet_c_folders",
    "index_shards",
    "keep_set",
    "load_further",
    "load_task",
    "long_tailed_counts",
    "normalize",
    "placed_near",
    "placeless",
    "read_index",
    "resize",
    "resized_crop",
    "rotate",
    "split_by_class",
    "split_by_group",
    "step_counts",
    "unpack_tiered_imagenet",
    "write_images",
    "write_shards",
]
