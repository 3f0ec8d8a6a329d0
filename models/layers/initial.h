#pragma once

#include "models/layers/layer.h"

namespace tutti {

// Initial values; each draws from the generator it is given, as torch.nn.init does.
Init constant_init(double value);
Init normal_init(double standard_deviation);
Init uniform_init(double bound);  // in [-bound, bound)

// torch.nn.init.kaiming_uniform_ with a = sqrt(5) for a tensor with `fan_in` inputs an output, which is what
// nn.Linear and nn.Conv2d start from; their biases too.
Init kaiming_uniform_init(int64_t fan_in);

// torch.nn.init.kaiming_normal_(mode="fan_out", nonlinearity="relu"): torchvision's convolutions.
Init kaiming_normal_init(int64_t fan_out);

}  // namespace tutti
