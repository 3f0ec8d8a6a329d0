#include "models/exported/leaves.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "models/layers/activation.h"
#include "models/layers/conv.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "models/layers/pool.h"
#include "runtime/error.h"

namespace tutti::exported {
namespace {

// The arguments of a call besides its input: constants, and the module's own weights.
class Call {
 public:
  Call(const Module& module, const Node& node, const Program& program)
      : module_(module), node_(node), program_(program) {}

  const std::string& target() const { return node_.target; }
  // Null if the module has none of this name.
  const StoredTensor* weight(const std::string& name) const {
    const Operand* const given = find(name);
    return given && given->kind == Operand::Kind::kValue ? &program_.stored.at(given->value) : nullptr;
  }
  // Throws UserError if the shape of the weight has another number of sizes.
  const Shape& shape_of_weight(std::size_t sizes) const {
    const StoredTensor* const stored = weight("weight");
    if (!stored || stored->shape.size() != sizes)
      throw UserError("'" + target() + "' in '" + module_.path + "' has no weight of " +
                      std::to_string(sizes) + " dimensions");
    return stored->shape;
  }
  bool flag(const char* name, bool otherwise = false) const {
    const Operand* const given = find(name);
    return given && given->constant.isBool() ? given->constant.toBool() : otherwise;
  }
  double number(const char* name, double otherwise) const {
    const Operand* const given = find(name);
    return given ? given->constant.toScalar().toDouble() : otherwise;
  }
  int64_t integer(const char* name, int64_t otherwise) const {
    const Operand* const given = find(name);
    return given ? given->constant.toInt() : otherwise;
  }
  Shape integers(const char* name) const {
    Shape numbers;
    if (const Operand* const given = find(name))
      for (const Operand& item : given->items) numbers.push_back(item.constant.toInt());
    return numbers;
  }
  Extent2d extent(const char* name, Extent2d otherwise) const {
    const Shape given = integers(name);
    if (given.empty()) return otherwise;
    return {given.front(), given.back()};
  }

  // True if all arguments but the first, `x`, are constants or weights of the module by their own names.
  bool is_plain(const std::string& x) const {
    if (node_.inputs.empty() || node_.inputs[0].second.value != x) return false;
    std::size_t weights = 0;
    for (std::size_t i = 1; i < node_.inputs.size(); ++i) {
      const auto& [name, operand] = node_.inputs[i];
      if (operand.kind == Operand::Kind::kValue) {
        if (!is_own(name, operand.value)) return false;
        ++weights;
      } else if (operand.kind == Operand::Kind::kList) {
        if (!std::ranges::all_of(operand.items, [](const Operand& one) { return one.constant.isInt(); }))
          return false;
      } else if (operand.kind != Operand::Kind::kConstant) {
        return false;
      }
    }
    return weights == module_.stored.size();
  }

 private:
  const Operand* find(const std::string& name) const {
    const Operand* const operand = node_.input(name);
    return operand && operand->is_none() ? nullptr : operand;
  }
  bool is_own(const std::string& name, const std::string& value) const {
    const auto stored = program_.stored.find(value);
    const std::string full = module_.path.empty() ? name : module_.path + "." + name;
    return stored != program_.stored.end() && stored->second.kind == StoredTensor::Kind::kParameter &&
           stored->second.name == full && stored->second.dtype == at::kFloat;
  }

  const Module& module_;
  const Node& node_;
  const Program& program_;
};

std::shared_ptr<Layer> conv2d(const Call& call) {
  const Shape& weight = call.shape_of_weight(4);
  const int64_t groups = call.integer("groups", 1);
  if (groups < 1 || groups > weight[0])
    throw UserError("a convolution has " + std::to_string(groups) + " groups");
  return std::make_shared<Conv2d>(Conv2dOptions{.in_channels = weight[1] * groups,
                                                .out_channels = weight[0],
                                                .kernel_size = {weight[2], weight[3]},
                                                .stride = call.extent("stride", 1),
                                                .padding = call.extent("padding", 0),
                                                .dilation = call.extent("dilation", 1),
                                                .groups = groups,
                                                .bias = call.weight("bias") != nullptr});
}

std::shared_ptr<Layer> linear(const Call& call) {
  const Shape& weight = call.shape_of_weight(2);
  return std::make_shared<Linear>(weight[1], weight[0], call.weight("bias") != nullptr);
}

std::shared_ptr<Layer> layer_norm(const Call& call) {
  return std::make_shared<LayerNorm>(LayerNormOptions{.shape = call.integers("normalized_shape"),
                                                      .eps = call.number("eps", 1e-5),
                                                      .affine = call.weight("weight") != nullptr,
                                                      .bias = call.weight("bias") != nullptr});
}

std::shared_ptr<Layer> group_norm(const Call& call) {
  if (!call.weight("weight") || !call.weight("bias")) return nullptr;  // its channels are not known
  return std::make_shared<GroupNorm>(GroupNormOptions{.groups = call.integer("num_groups", 1),
                                                      .channels = call.shape_of_weight(1)[0],
                                                      .eps = call.number("eps", 1e-5)});
}

std::shared_ptr<Layer> max_pool2d(const Call& call) {
  const Extent2d size = call.extent("kernel_size", 1);
  return std::make_shared<MaxPool2d>(MaxPool2dOptions{.kernel_size = size,
                                                      .stride = call.extent("stride", size),
                                                      .padding = call.extent("padding", 0),
                                                      .dilation = call.extent("dilation", 1),
                                                      .ceil_mode = call.flag("ceil_mode")});
}

using Maker = std::shared_ptr<Layer> (*)(const Call&);
const std::map<std::string, Maker>& makers() {
  static const std::map<std::string, Maker> all{{"aten.conv2d.default", conv2d},
                                                {"aten.linear.default", linear},
                                                {"aten.layer_norm.default", layer_norm},
                                                {"aten.group_norm.default", group_norm},
                                                {"aten.max_pool2d.default", max_pool2d}};
  return all;
}

std::shared_ptr<Layer> layer_of(const Call& call, bool always) {
  if (call.target() == "aten.dropout.default")
    return call.flag("train") || always ? std::make_shared<Dropout>(call.number("p", 0.5)) : nullptr;
  const auto maker = makers().find(call.target());
  return maker == makers().end() ? nullptr : maker->second(call);
}

}  // namespace

Init init_from(std::shared_ptr<const Archive> archive, std::string name) {
  return [archive = std::move(archive), name = std::move(name)](at::Tensor& to, at::Generator) {
    archive->read(name, to);
  };
}

std::shared_ptr<Layer> make_leaf(const Module& module, const std::vector<std::string>& inputs,
                                 const Program& program, const std::shared_ptr<const Archive>& archive,
                                 bool always) {
  if (module.items.size() != 1 || !module.items[0].node || inputs.size() != 1 || module.path.empty())
    return nullptr;
  const Call call(module, *module.items[0].node, program);
  if (!call.is_plain(inputs[0])) return nullptr;
  const auto layer = layer_of(call, always);
  if (!layer) return nullptr;
  for (const auto& parameter : layer->own_parameters()) {
    const StoredTensor& stored = *call.weight(parameter->name);
    parameter->trained = stored.trained;
    parameter->init = init_from(archive, stored.name);
  }
  return layer;
}

}  // namespace tutti::exported
