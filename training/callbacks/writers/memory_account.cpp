#include "training/callbacks/writers/memory_account.h"

#include <sstream>

#include "tensors/meter.h"

namespace tutti {

std::string memory_account(const State& state) {
  int64_t parameters = 0, gradients = 0, buffers = 0, optimizer = 0;
  const auto bytes = [](const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); };
  for (const auto& view : state.views) {
    parameters += bytes(view.tensor);
    if (view.grad.defined()) gradients += bytes(view.grad);
  }
  for (const auto& one : state.buffers) buffers += bytes(one.buffer->tensor);
  if (state.optimizer)
    for (const auto& one : state.optimizer->state()) optimizer += bytes(one.tensor);
  const int64_t used = Meter::used_bytes(state.memory_slot);
  std::ostringstream text;
  text << "rank " << state.rank << ", after batch " << state.timestamp.batch << ", bytes\n"
       << "parameters " << parameters << "\ngradients " << gradients << "\nbuffers " << buffers
       << "\noptimizer " << optimizer << "\nthe rest " << used - parameters - gradients - buffers - optimizer
       << "\nin use " << used << "\nat most " << Meter::peak_bytes(state.memory_slot) << '\n';
  return text.str();
}

}  // namespace tutti
