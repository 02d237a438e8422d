"""Image classifiers as ordinary layers: the face of ``argosy.vision.models``. Weights are the user's to load."""

from argosy.faces import face

# No module has the name of a function that it gives: importing it would put it into that function's place.
_MODULES = {
    "lenet": ("LeNet",),
    "alex": ("AlexNet", "alexnet"),
    "vgg": ("VGG", "vgg11", "vgg13", "vgg16", "vgg19"),
    "resnet": (
        "ResNet", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "resnext50_32x4d", "resnext50_64x4d",
        "resnext101_32x4d", "resnext101_64x4d", "resnext152_32x4d", "resnext152_64x4d", "wide_resnet50_2",
        "wide_resnet101_2",
    ),
    "mobilenetv1": ("MobileNetV1", "mobilenet_v1"),
    "mobilenetv2": ("MobileNetV2", "mobilenet_v2"),
    "mobilenetv3": ("MobileNetV3Small", "MobileNetV3Large", "mobilenet_v3_small", "mobilenet_v3_large"),
    "densenet": ("DenseNet", "densenet121", "densenet161", "densenet169", "densenet201", "densenet264"),
    "inceptionv3": ("InceptionV3", "inception_v3"),
    "squeezenet": ("SqueezeNet", "squeezenet1_0", "squeezenet1_1"),
    "inceptionv1": ("GoogLeNet", "googlenet"),
    "shufflenetv2": (
        "ShuffleNetV2", "shufflenet_v2_x0_25", "shufflenet_v2_x0_33", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0",
        "shufflenet_v2_x1_5", "shufflenet_v2_x2_0", "shufflenet_v2_swish",
    ),
}  # fmt: skip
_TABLE = {name: f"argosy.vision.models.{module}:{name}" for module, names in _MODULES.items() for name in names}

__getattr__, __dir__ = face(__name__, _TABLE, globals())
