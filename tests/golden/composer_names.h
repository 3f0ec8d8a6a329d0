#pragma once

#include <map>
#include <string>

namespace tutti {

// What a recipe calls the classes that golden cases name.
const std::map<std::string, std::string>& optimizer_kinds();  // "torch.optim.SGD" -> "sgd"
const std::map<std::string, std::string>& scheduler_kinds();  // "composer.optim.StepScheduler" -> "step"

}  // namespace tutti
