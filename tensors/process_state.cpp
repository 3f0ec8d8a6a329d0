#include "tensors/process_state.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <mutex>

#include "tensors/meter.h"

namespace tutti {
namespace {

at::Generator default_generator() { return at::globalContext().defaultGenerator(at::kCPU); }

}  // namespace

void set_compute_threads(int threads) { at::set_num_threads(threads); }

void set_deterministic_mode(bool on) {
  at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(on);
  if (on) at::globalContext().setBenchmarkCuDNN(false);
}

void seed_default_generator(uint64_t seed) {
  at::Generator generator = default_generator();
  std::lock_guard lock(generator.mutex());
  generator.set_current_seed(seed);
}

at::Tensor default_generator_state() {
  at::Generator generator = default_generator();
  std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

DefaultGeneratorScope::DefaultGeneratorScope(const at::Tensor& state) : before_(default_generator_state()) {
  at::Generator generator = default_generator();
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

DefaultGeneratorScope::~DefaultGeneratorScope() {
  at::Generator generator = default_generator();
  std::lock_guard lock(generator.mutex());
  generator.set_state(before_);
}

void ProcessStateSwitch::enter(int rank) {
  if (rank == current_) return;
  const MemoryScopePause pause;
  at::Generator generator = default_generator();
  std::lock_guard lock(generator.mutex());
  if (current_ >= 0) generators_[current_] = generator.get_state();
  if (generators_[rank].defined()) generator.set_state(generators_[rank]);
  Meter::set_owner(rank);
  current_ = rank;
}

}  // namespace tutti
