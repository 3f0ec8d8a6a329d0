#include "models/script/nested_tuples.h"

#include <torch/csrc/jit/frontend/tree_views.h>

namespace tutti::script {

namespace jit = torch::jit;

jit::TreeRef NestedTuples::excess_in(const jit::TreeRef& code) {
  value_of(code);
  return excess_;
}

NestedTuples::TuplePtr NestedTuples::value_of(const jit::TreeRef& tree) {
  switch (tree->kind()) {
    case jit::TK_DEF:
      variables_.clear();
      break;
    case jit::TK_VAR: {
      const auto found = variables_.find(jit::Var(tree).name().name());
      return found == variables_.end() ? nullptr : found->second;
    }
    case jit::TK_TUPLE_LITERAL:
      return made(tree);
    case jit::TK_SUBSCRIPT:
      return part(tree);
    case jit::TK_ASSIGN: {
      const jit::Assign assignment(tree);
      const TuplePtr value = largest_below(assignment.rhs().tree());
      for (const jit::Expr& to : assignment.lhs_list()) assign(to.tree(), value);
      return nullptr;
    }
    case jit::TK_IF:
    case jit::TK_FOR:
    case jit::TK_WHILE:
      ++blocks_;
      largest_below(tree);
      --blocks_;
      return nullptr;
    case jit::TK_APPLY:  // a type of the file's, or the operator's
      largest_below(tree);
      return nullptr;
    default:
      break;
  }
  return largest_below(tree);
}

NestedTuples::TuplePtr NestedTuples::largest_below(const jit::TreeRef& tree) {
  TuplePtr largest;
  for (const jit::TreeRef& one : tree->trees())
    if (TuplePtr value = value_of(one); items_of(value) > items_of(largest)) largest = std::move(value);
  return largest;
}

NestedTuples::TuplePtr NestedTuples::made(const jit::TreeRef& literal) {
  auto tuple = std::make_shared<Tuple>();
  for (const jit::Expr& one : jit::TupleLiteral(literal).inputs()) {
    tuple->parts.push_back(value_of(one.tree()));
    nested_ += items_of(tuple->parts.back());
    tuple->items += 1 + items_of(tuple->parts.back());
  }
  if (nested_ > kMost && !excess_) excess_ = literal;
  return excess_ ? nullptr : tuple;  // else numbers would grow without a bound
}

NestedTuples::TuplePtr NestedTuples::part(const jit::TreeRef& subscript) {
  const jit::Subscript of(subscript);
  const TuplePtr value = value_of(of.value().tree());
  const auto places = of.subscript_exprs();
  largest_below(places.tree());
  if (!value || places.size() != 1 || places[0].kind() != jit::TK_CONST) return value;
  const jit::Const place(places[0].tree());
  const bool is_part = place.isIntegral() && place.asIntegral() < std::ssize(value->parts);
  return is_part ? value->parts[static_cast<std::size_t>(place.asIntegral())] : nullptr;
}

// A block may not run: a variable keeps the larger value then.
void NestedTuples::assign(const jit::TreeRef& to, const TuplePtr& value) {
  if (to->kind() == jit::TK_TUPLE_LITERAL) {
    const auto parts = jit::TupleLiteral(to).inputs();
    for (std::size_t i = 0; i < parts.size(); ++i)
      assign(parts[i].tree(), value && i < value->parts.size() ? value->parts[i] : nullptr);
  } else if (to->kind() == jit::TK_VAR) {
    TuplePtr& variable = variables_[jit::Var(to).name().name()];
    if (blocks_ == 0 || items_of(value) > items_of(variable)) variable = value;
  }
}

}  // namespace tutti::script
