#include "training/callbacks/writers/memory_files.h"

#include "training/callbacks/writers/file_names.h"
#include "training/callbacks/writers/memory_account.h"
#include "training/state.h"

namespace tutti {

void OomObserver::out_of_memory(State& state, Logger&, const std::string& account) {
  write_beside(disk_, file_name(state, file_.folder + "/" + file_.filename),
               account + "\n" + memory_account(state), file_.overwrite);
}

void MemorySnapshot::batch_end(State& state, Logger&) {
  if (due_.at_batch_end(state)) write(state);
}

void MemorySnapshot::epoch_end(State& state, Logger&) {
  if (due_.at_epoch_end(state)) write(state);
}

void MemorySnapshot::iteration_end(State& state, Logger&) {
  if (due_.at_iteration_end(state)) write(state);
}

void MemorySnapshot::write(const State& state) {
  if (state.timestamp.batch <= skip_batches_) return;
  write_beside(disk_, file_name(state, file_.folder + "/" + file_.filename), memory_account(state),
               file_.overwrite);
}

}  // namespace tutti
