from .focal import FocalLoss, focal_loss

__all__ = ["FocalLoss", "focal_loss"]
