#pragma once

#include <ATen/core/ivalue.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensors/param_view.h"

// A program of torch.export (PyTorch 2.9 to 2.15), as of models/model.json in the archive.
namespace tutti::exported {

struct Graph;

// An argument of a call, or an output of a graph.
struct Operand {
  enum class Kind { kConstant, kValue, kList, kDevice, kGraph };
  Kind kind = Kind::kConstant;
  c10::IValue constant;                     // kConstant
  std::string value;                        // kValue: its name
  std::vector<Operand> items;               // kList
  std::shared_ptr<const Graph> graph = {};  // kGraph

  bool is_none() const { return kind == Kind::kConstant && constant.isNone(); }
};

// The module whose forward makes a call, with the modules around, outermost first.
struct Frame {
  std::string call;  // unlike for two calls of a module
  std::string path;  // "layer1.0.conv1"; "" is the whole
  std::string type;  // its class: "Conv2d"
};

struct Node {
  std::string target;  // "aten.conv2d.default", "_operator.mul", "higher_order.wrap_with_autocast"
  std::vector<std::pair<std::string, Operand>>
      inputs;                        // by the name of the argument; "" for Python's functions
  std::vector<std::string> outputs;  // names of the results; "" for an unused result
  bool makes_list = false;           // the outputs are the items of one list
  bool makes_number = false;         // and no tensors
  std::vector<Frame> frames;

  const Operand* input(const std::string& name) const;  // null: the call has no such argument
};

struct Graph {
  std::vector<std::string> inputs;  // names of values
  std::vector<Node> nodes;
  std::vector<Operand> outputs;
};

// True for an operator of libtorch's that writes into its first argument: "aten.relu_.default".
bool is_in_place(const std::string& target);
// True if an operator of the graph, or of a graph within, is in place.
bool writes_in_place(const Graph& graph);

// A parameter, buffer or constant: an input of the graph that the file holds.
struct StoredTensor {
  enum class Kind { kParameter, kBuffer, kConstant };
  Kind kind = Kind::kParameter;
  std::string name;  // "layer1.0.conv1.weight"
  bool persistent = true;
  bool trained = true;
  Shape shape;
  at::ScalarType dtype = at::kFloat;
};

struct Program {
  Graph graph;
  std::map<std::string, StoredTensor> stored;  // by the name of the value
  std::vector<std::string> stored_order;       // their values, as the file lists them
  // Sizes of -1 are free.
  struct Meta {
    Shape sizes = {};
    at::ScalarType dtype = at::kFloat;
    int64_t most = 0;  // of a free first size: torch.export.Dim's max; 0: any
  };
  std::map<std::string, Meta> metas;       // of tensors that go in or come out, by value
  std::vector<std::string> user_inputs;    // names of values, in the order of forward's arguments
  std::vector<std::string> output_names;   // of forward's results: "logits", "0"; "" for one tensor
  std::vector<std::size_t> output_places;  // in graph.outputs
};

// torch._export.serde.schema.ScalarType. Throws UserError.
at::ScalarType dtype_of(int64_t number);

// Throws UserError.
Program parse_program(const std::string& json);

}  // namespace tutti::exported
