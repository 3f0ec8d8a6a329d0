#include "training/callbacks/writers/memory_files.h"

#include <sstream>

#include "tensors/memory/meter.h"
#include "training/callbacks/factory.h"
#include "training/callbacks/writers/file_names.h"
#include "training/state.h"

namespace tutti {

std::string memory_account(const State& state) {
  int64_t parameters = 0, gradients = 0, buffers = 0, optimizer = 0;
  const auto bytes = [](const at::Tensor& tensor) { return static_cast<int64_t>(tensor.nbytes()); };
  for (const auto& view : state.views) {
    parameters += bytes(view.tensor);
    if (view.grad.defined()) gradients += bytes(view.grad);
  }
  for (const auto& named : state.buffers) buffers += bytes(named.buffer->tensor);
  if (state.optimizer)
    for (const auto& optimizer_state : state.optimizer->state()) optimizer += bytes(optimizer_state.tensor);
  const int64_t used = Meter::used_bytes(state.device.memory_slot);
  std::ostringstream text;
  text << "rank " << state.topology.rank << ", after batch " << state.timestamp.batch << ", bytes\n"
       << "parameters " << parameters << "\ngradients " << gradients << "\nbuffers " << buffers
       << "\noptimizer " << optimizer << "\nthe rest " << used - parameters - gradients - buffers - optimizer
       << "\nin use " << used << "\nat most " << Meter::peak_bytes(state.device.memory_slot) << '\n';
  return text.str();
}

void OomObserver::out_of_memory(State& state, Logger&, const std::string& account) {
  write_beside(disk_, file_name(state, file_.path()), account + "\n" + memory_account(state),
               file_.overwrite);
}

void MemorySnapshot::interval_passed(const State& state) {
  if (state.timestamp.batch <= skip_batches_) return;
  write_beside(disk_, file_name(state, file_.path()), memory_account(state), file_.overwrite);
}

CallbackPtr MemorySnapshotOptions::make(const Setting&, const CallbackEnvironment& environment) const {
  return std::make_shared<MemorySnapshot>(environment.disk, *this, interval, skip_batches);
}

CallbackPtr OomObserverOptions::make(const Setting&, const CallbackEnvironment& environment) const {
  return std::make_shared<OomObserver>(environment.disk, *this);
}

}  // namespace tutti
