#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/exported/archive.h"
#include "models/exported/steps.h"
#include "models/torch/written_tensors.h"

namespace tutti::exported {

// The calls of a module of an exported program, as a layer has them: its parameters and buffers, its slots
// for the modules below, and what it does.
struct Part {
  struct Owned {
    StoredTensor stored;
    std::string name;  // within the layer
  };

  std::string kind;  // of the module: "Conv2d"
  std::vector<Owned> parameters, buffers;
  std::vector<std::pair<std::string, std::shared_ptr<Layer>>> slots;
  Steps steps;
  std::size_t values = 0;
  std::vector<std::size_t> inputs;  // places of what it gets
  std::vector<bool> numbers;        // which inputs are numbers of the host
  std::vector<Source> outputs;
};

// A layer, or a model, with a part.
template <class Base>
class PartLayer : public Base {
 public:
  TensorTree forward(const TensorTree& input) override {
    return packed(run_part(unpacked(input, part_.numbers)));
  }
  const char* kind() const override { return part_.kind.c_str(); }

  PartLayer(Part part, const std::shared_ptr<const Archive>& archive) : part_(std::move(part)) {
    for (const Part::Owned& one : part_.parameters)
      this->add_parameter(one.name, one.stored.shape, init_of(one, archive), one.stored.dtype).trained =
          one.stored.trained;
    for (const Part::Owned& one : part_.buffers)
      this->add_buffer(one.name, one.stored.shape, init_of(one, archive), one.stored.dtype,
                       one.stored.persistent);
    for (auto& [name, layer] : part_.slots) this->add_slot(name, std::move(layer));
  }

 protected:
  Values run_part(Values given) const {
    Run run{*this, Values(part_.values), device_of(given)};
    for (std::size_t i = 0; i < given.size(); ++i) run.values[part_.inputs[i]] = std::move(given[i]);
    const WrittenTensors written(*this);
    run_steps(part_.steps, run);
    written.require_none();
    Values found;
    for (const Source& one : part_.outputs) found.push_back(one.in(run));
    return found;
  }

 private:
  static Init init_of(const Part::Owned& one, const std::shared_ptr<const Archive>& archive) {
    return [archive, name = one.stored.name](at::Tensor& to, at::Generator) { archive->read(name, to); };
  }
  Device device_of(const Values& given) const {
    for (const c10::IValue& one : given)
      if (one.isTensor()) return {one.toTensor().device()};
    for (const auto& one : this->own_parameters()) return {one->tensor.device()};
    for (const auto& one : this->own_buffers()) return {one->tensor.device()};
    return {};
  }

  Part part_;
};

using ExportedLayer = PartLayer<Layer>;

// Two parameters that share their values: one that the model does not have, and the one that it has.
struct TiedNames {
  std::string other, own;
};

// Makes one of the parameters that share their values in the file: the first.
std::vector<TiedNames> join_tied(Program& program, const Archive& archive);

// The whole program, whose inputs are the program's. Throws UserError for what cannot be run.
Part make_part(const Program& program, const std::shared_ptr<const Archive>& archive);

}  // namespace tutti::exported
