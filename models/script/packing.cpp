#include "models/script/packing.h"

#include <ATen/core/jit_type.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <utility>

namespace tutti::script {
namespace {

constexpr std::size_t kMost = 1 << 16;
constexpr const char* kStructure = "structure";

bool has_undefined(const c10::IValue& value) {
  if (value.isTensor()) return !value.toTensor().defined();
  return value.isTuple() && std::ranges::any_of(value.toTupleRef().elements(), has_undefined);
}

// libtorch does not know it of a tuple with undefined tensors, as attention without weights returns one; its
// name is lost.
c10::TypePtr type_of(const c10::IValue& value) {
  return has_undefined(value) ? c10::TupleType::create({}) : value.type();
}

}  // namespace

Packing::Structure Packing::structure_of(const c10::IValue& value, Tensors& tensors) {
  if (value.isTensor() && value.toTensor().defined()) {
    tensors.push_back(value.toTensor());
    return {.is_tensor = true};
  }
  if (!value.isTuple() && !value.isList() && !value.isGenericDict()) return {.plain = value};
  Structure structure{.type = type_of(value)};
  const auto add = [&](const c10::IValue& item) { structure.items.push_back(structure_of(item, tensors)); };
  if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) add(item);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) add(item);
  } else {
    for (const auto& entry : value.toGenericDict()) {
      add(entry.key());
      add(entry.value());
    }
  }
  return structure;
}

c10::IValue Packing::value_of(const Structure& structure, Tensors::const_iterator& next) {
  if (structure.is_tensor) return *next++;
  if (!structure.type) return structure.plain;
  std::vector<c10::IValue> items;
  for (const Structure& item : structure.items) items.push_back(value_of(item, next));
  if (const auto tuple = structure.type->cast<c10::TupleType>())
    return tuple->name() ? c10::ivalue::Tuple::createNamed(std::move(items), tuple)
                         : c10::ivalue::Tuple::create(std::move(items));
  if (const auto type = structure.type->cast<c10::DictType>()) {
    c10::impl::GenericDict dict(type->getKeyType(), type->getValueType());
    for (std::size_t i = 0; i < items.size(); i += 2) dict.insert_or_assign(items[i], items[i + 1]);
    return dict;
  }
  c10::impl::GenericList list(structure.type->expectRef<c10::ListType>().getElementType());
  for (c10::IValue& item : items) list.push_back(std::move(item));
  return list;
}

TensorTree Packing::pack(const std::vector<c10::IValue>& values) {
  if (values.size() == 1 && values.front().isTensor() && values.front().toTensor().defined())
    return values.front().toTensor();
  Tensors tensors;
  std::vector<Structure> structures;
  for (const c10::IValue& value : values) structures.push_back(structure_of(value, tensors));
  std::vector<TensorTree> items(tensors.begin(), tensors.end());
  TensorTree tree = TensorTree::list(std::move(items));
  const std::lock_guard lock(mutex_);
  structures_.resize(std::max(structures_.size(), std::min(made_ + 1, kMost)));
  structures_[made_ % kMost] = std::move(structures);
  tree.set(kStructure, at::scalar_tensor(static_cast<int64_t>(made_ % kMost), at::kLong));
  ++made_;
  return tree;
}

std::vector<c10::IValue> Packing::unpack(const TensorTree& tree) const {
  if (tree.is_leaf()) return {tree.tensor()};
  Tensors tensors;
  for (const auto& [name, child] : tree.children())
    if (name != kStructure) tensors.push_back(child.tensor());
  const std::lock_guard lock(mutex_);
  auto next = tensors.cbegin();
  std::vector<c10::IValue> values;
  const auto number = static_cast<std::size_t>(tree[kStructure].item<int64_t>());
  for (const Structure& structure : structures_.at(number)) values.push_back(value_of(structure, next));
  return values;
}

}  // namespace tutti::script
