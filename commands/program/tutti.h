#pragma once

// The headers that a program or a plugin usually needs, installed as <tutti/tutti.h>. libtorch's own headers
// are left out: a torch::nn::Module needs <torch/nn.h>, and tensors <ATen/ATen.h>.
#include "commands/program/train_program.h"
#include "commands/trainer.h"
#include "data/readers/synthetic_dataset.h"
#include "job/plugin.h"
#include "models/torch/torch_module.h"
#include "training/state.h"
