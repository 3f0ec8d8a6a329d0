#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tensors/param_view.h"

namespace tutti {

struct ObjectTree;

// A tensor in files of another program, in parts.
struct TreeTensor {
  struct Part {
    std::string file;
    uint64_t at = 0;       // byte offset of the first number
    Shape offset, extent;  // within the whole
    Shape strides;         // in numbers; empty: row-major
  };

  at::ScalarType dtype = at::kFloat;
  Shape shape;
  std::vector<Part> parts;
};

// The Python objects of a checkpoint, without the code of their classes: dicts, lists, plain values, tensors.
// Monostate: None, and objects of which nothing is known. Keys that are whole numbers are texts here.
struct ObjectTree {
  using List = std::vector<ObjectTree>;
  using Dict = std::vector<std::pair<std::string, ObjectTree>>;

  std::variant<std::monostate, bool, int64_t, double, std::string, TreeTensor, List, Dict> value;

  // The object below these keys; null if there is none.
  const ObjectTree* find(std::string_view key) const;
  const ObjectTree* at(std::initializer_list<std::string_view> keys) const;

  const Dict* dict() const { return std::get_if<Dict>(&value); }
  const List* list() const { return std::get_if<List>(&value); }
  const TreeTensor* tensor() const { return std::get_if<TreeTensor>(&value); }
  bool is_true() const { return std::holds_alternative<bool>(value) && std::get<bool>(value); }
  std::string text() const;              // "" for other values
  double number(double fallback) const;  // whole or not
  int64_t integer(int64_t fallback) const;
};

// Reads a file of torch.save. Runs no code: a class that checkpoints do not need is an error. Throws
// UserError with the file.
ObjectTree read_torch_objects(const std::string& path);

// Reads a folder of torch.distributed.checkpoint: ".metadata" and the ".distcp" files that it names. Tensors
// have a part for each piece that a rank saved. Throws UserError with the file.
ObjectTree read_distributed_objects(const std::string& folder);

}  // namespace tutti
