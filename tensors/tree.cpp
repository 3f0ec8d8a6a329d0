#include "tensors/tree.h"

#include <ATen/ATen.h>
#include <c10/core/ScalarType.h>

#include "runtime/error.h"

namespace tutti {
namespace {

std::string names_of(const TensorTree::Children& children) {
  std::string names;
  for (const auto& [name, child] : children) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "nothing" : names;
}

void collect(const TensorTree& tree, const std::string& path,
             std::vector<std::pair<std::string, at::Tensor>>& into) {
  if (tree.is_leaf()) into.emplace_back(path, tree.tensor());
  for (const auto& [name, child] : tree.children())
    collect(child, path.empty() ? name : path + "." + name, into);
}

const at::Tensor* first_leaf(const TensorTree& tree) {
  if (tree.is_leaf()) return &tree.tensor();
  for (const auto& [name, child] : tree.children())
    if (const at::Tensor* leaf = first_leaf(child)) return leaf;
  return nullptr;
}

}  // namespace

TensorTree TensorTree::list(std::vector<TensorTree> items) {
  Children children;
  children.reserve(items.size());
  for (auto& item : items) children.emplace_back(std::to_string(children.size()), std::move(item));
  return TensorTree(std::move(children));
}

const at::Tensor& TensorTree::tensor() const {
  TUTTI_ASSERT(!empty(), "a tree without tensors has no tensor");
  if (!is_leaf()) throw UserError("expected one tensor; there are several: " + names_of(children_));
  return leaf_;
}

const TensorTree* TensorTree::find(std::string_view path) const {
  for (const auto& [name, child] : children_) {
    if (path == name) return &child;
    if (path.size() > name.size() && path.starts_with(name) && path[name.size()] == '.')
      if (const TensorTree* tensors = child.find(path.substr(name.size() + 1))) return tensors;
  }
  return nullptr;
}

const TensorTree& TensorTree::at(std::string_view path) const {
  const TensorTree* tensors = find(path);
  if (!tensors)
    throw UserError("no '" + std::string(path) + "' among the tensors; there is " + names_of(children_));
  return *tensors;
}

void TensorTree::set(const std::string& name, TensorTree child) {
  TUTTI_ASSERT(!is_leaf(), "a single tensor has no child '" + name + "'");
  for (auto& [existing, value] : children_) {
    if (existing != name) continue;
    value = std::move(child);
    return;
  }
  children_.emplace_back(name, std::move(child));
}

TensorTree TensorTree::map(const LeafFunction& function) const {
  if (is_leaf()) return function(leaf_);
  Children children;
  children.reserve(children_.size());
  for (const auto& [name, child] : children_) children.emplace_back(name, child.map(function));
  return TensorTree(std::move(children));
}

std::vector<std::pair<std::string, at::Tensor>> TensorTree::leaves() const {
  std::vector<std::pair<std::string, at::Tensor>> leaves;
  collect(*this, "", leaves);
  return leaves;
}

int64_t TensorTree::samples() const {
  const at::Tensor* leaf = first_leaf(*this);
  if (!leaf) return 0;
  TUTTI_ASSERT(leaf->dim() > 0, "a batch's first tensor is a scalar");
  return leaf->size(0);
}

TensorTree TensorTree::narrow(int64_t first, int64_t count) const {
  return map([&](const at::Tensor& leaf) { return leaf.narrow(0, first, count); });
}

void fail_without_array(const std::string& array, const std::vector<std::string>& names) {
  std::string there;
  for (const std::string& name : names) there += (there.empty() ? "" : ", ") + name;
  throw UserError("no array '" + array + "' in the samples; there is " + (there.empty() ? "nothing" : there));
}

std::string SampleSpec::describe(const std::string& array) const {
  const auto dtype = dtypes.find(array);
  // The names are strings or string_views, by the version of libtorch.
  const std::string type =
      dtype == dtypes.end() ? "" : std::string(c10::getDtypeNames(dtype->second).first) + ' ';
  const Shape& shape = shapes.at(array);
  return type + (shape.empty() ? "number" : shape_text(shape));
}

std::string shape_text(at::IntArrayRef shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "[" + text + "]";
}

std::string naming_hint(const SampleSpec& samples, const std::string& array) {
  std::string text, input, target;
  for (const auto& [name, shape] : samples.shapes) {
    text += (text.empty() ? "; it has '" : ", '") + name + "' (" + samples.describe(name) + " a sample)";
    (shape.empty() ? target : input) = name;
  }
  const bool known = samples.shapes.size() == 2 && !input.empty() && !target.empty();
  if (text.empty()) return text;
  return text + ". data.train.arrays = { " +
         (known ? "input = \"" + input + "\", target = \"" + target + "\"" : array + " = \"...\"") +
         " } names arrays of an HDF5 file for the model";
}

}  // namespace tutti
