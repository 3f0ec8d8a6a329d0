#include "models/script/load_scope.h"

#include <torch/csrc/jit/runtime/operator.h>

#include <memory>
#include <stdexcept>
#include <utility>

namespace tutti::script {
namespace {

namespace jit = torch::jit;

constexpr std::size_t kMostJoinedBytes = 1024;

thread_local int loads_script = 0;

// libtorch leaves an operator that fails to the run.
void require_short(const jit::Stack& stack) {
  if (loads_script == 0 || stack.size() < 2) return;
  const std::size_t bytes = stack.end()[-2].toStringRef().size() + stack.end()[-1].toStringRef().size();
  if (bytes > kMostJoinedBytes) throw std::length_error("a text is too long to be joined ahead");
}

// `a + b` of texts, in the whole process.
bool replace_join() {
  const std::shared_ptr<jit::Operator> usual = jit::findOperatorFor({"aten::add", "str"});
  if (!usual || usual->isC10Op()) return false;
  jit::Operation join = usual->getOperation();
  const c10::FunctionSchema schema = usual->schema();
  jit::deregisterOperator(schema);
  jit::registerOperator(jit::Operator(
      schema.name(), schema.overload_name(), schema.arguments(), schema.returns(),
      [join](jit::Stack& stack) mutable {
        require_short(stack);
        join(stack);
      },
      schema.aliasAnalysis()));
  return true;
}

}  // namespace

LoadScope::LoadScope() : guard_(&silence_) {
  static const bool replaced = replace_join();
  static_cast<void>(replaced);
  ++loads_script;
}

LoadScope::~LoadScope() { --loads_script; }

}  // namespace tutti::script
