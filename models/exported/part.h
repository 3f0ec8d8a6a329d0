#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/exported/archive.h"
#include "models/exported/leaves.h"
#include "models/exported/steps.h"

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
  bool always = false;  // operators that were exported in evaluation mode are in training with the layer
};

// Runs the part of a layer. `inputs`: in the order of the part's.
Values run_part(const Part& part, Layer& layer, Values inputs);

// A layer, or a model, with a part.
template <class Base>
class PartLayer : public Base {
 public:
  TensorTree forward(const TensorTree& input) override { return packed(run(unpacked(input, part_.numbers))); }
  const char* kind() const override { return part_.kind.c_str(); }

  PartLayer(Part part, const std::shared_ptr<const Archive>& archive) : part_(std::move(part)) {
    for (const auto& [stored, name] : part_.parameters)
      this->add_parameter(name, stored.shape, init_from(archive, stored.name), stored.dtype).trained =
          stored.trained;
    for (const auto& [stored, name] : part_.buffers)
      this->add_buffer(name, stored.shape, init_from(archive, stored.name), stored.dtype, stored.persistent);
    for (auto& [name, layer] : part_.slots) this->add_slot(name, std::move(layer));
  }

 protected:
  Values run(Values inputs) { return run_part(part_, *this, std::move(inputs)); }

 private:
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
