#include "models/script/load_scope.h"

#include <torch/csrc/jit/runtime/operator.h>

#include <memory>
#include <stdexcept>
#include <utility>

#include "runtime/error.h"

namespace tutti::script {
namespace {

namespace jit = torch::jit;

constexpr std::size_t kMostBytes = 1024;  // of a text that is made ahead

thread_local int loads_script = 0;

// An operator that gives a text, in the whole process. libtorch leaves one that fails to the run.
void bound(const char* name, const char* overload) {
  const std::shared_ptr<jit::Operator> usual = jit::findOperatorFor({name, overload});
  TUTTI_ASSERT(usual && !usual->isC10Op(), std::string("libtorch has another operator ") + name);
  jit::Operation make = usual->getOperation();
  const c10::FunctionSchema schema = usual->schema();
  jit::deregisterOperator(schema);
  jit::registerOperator(jit::Operator(
      schema.name(), schema.overload_name(), schema.arguments(), schema.returns(),
      [make](jit::Stack& stack) mutable {
        make(stack);
        if (loads_script > 0 && stack.back().toStringRef().size() > kMostBytes)
          throw std::length_error("a text is too long to be made ahead");
      },
      schema.aliasAnalysis()));
}

bool bound_texts() {
  bound("aten::add", "str");
  bound("aten::str", "");
  return true;
}

}  // namespace

LoadScope::LoadScope() : guard_(&silence_) {
  [[maybe_unused]] static const bool are_bounded = bound_texts();
  ++loads_script;
}

LoadScope::~LoadScope() { --loads_script; }

}  // namespace tutti::script
