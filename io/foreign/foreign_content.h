#pragma once

#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint/run_state.h"
#include "io/foreign/object_tree.h"

namespace tutti {

// What another program's checkpoint holds, under the names of that program.
struct ForeignContent {
  using Tensors = std::vector<std::pair<std::string, TreeTensor>>;

  // State of the optimizer. The parameter's name; "#3" for number 3 of the optimizer's parameters.
  struct Moment {
    std::string parameter, name;  // "fc.weight", "exp_avg"
    TreeTensor tensor;
  };

  Tensors weights;   // in the order of the file
  Tensors averages;  // of Composer's EMA and SWA, as "EMA/fc.weight"
  std::vector<Moment> moments;
  RunState state;  // time, and state.imported
};

// Readers of the objects that a program saved.
ForeignContent composer_content(const ObjectTree& saved);
ForeignContent lightning_content(const ObjectTree& saved);
// The weights of a folder of Hugging Face's, and its trainer_state.json and optimizer.pt, if there.
ForeignContent hugging_face_content(const std::string& folder);
// The weights of a file of safetensors.
ForeignContent safetensors_content(const std::string& path);
// Weights, and an optimizer's state_dict() and a step, if they are under usual keys.
ForeignContent plain_content(const ObjectTree& saved);

// True if the objects are that program's.
bool is_composers(const ObjectTree& saved);
bool is_lightnings(const ObjectTree& saved);

// Says that the program's random generators are not taken over.
void leave_generators(ForeignContent& content);
// Adds the tensors of a state_dict(). What is no tensor is listed.
void add_weights(ForeignContent& content, const ObjectTree* state_dict);
// Adds an optimizer's state_dict(): state by name or number, and the learning rate.
void add_optimizer(ForeignContent& content, const ObjectTree& state_dict);
// A whole number, also of a tensor of int64 without dimensions; -1 for other objects.
int64_t integer_in(const ObjectTree& object);
// Item `index` of a list, or of the dict that distributed checkpoints make of one; null if there is none.
const ObjectTree* item(const ObjectTree* list, std::size_t index);

}  // namespace tutti
