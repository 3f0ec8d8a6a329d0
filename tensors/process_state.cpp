#include "tensors/process_state.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <cstdlib>
#include <mutex>

#include "tensors/memory/meter.h"

namespace tutti {
namespace {

std::vector<at::Generator> default_generators(c10::Device device) {
  std::vector<at::Generator> all{at::globalContext().defaultGenerator(at::kCPU)};
  if (!device.is_cpu()) all.push_back(at::globalContext().defaultGenerator(device));
  return all;
}

}  // namespace

void set_compute_threads(int threads) { at::set_num_threads(threads); }

void set_deterministic_mode(bool on) {
  at::globalContext().setDeterministicAlgorithms(on, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(on);
  if (!on) return;
  at::globalContext().setBenchmarkCuDNN(false);
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*replace=*/0);
}

void set_tf32(bool on) {
  at::globalContext().setAllowTF32CuBLAS(on);
  at::globalContext().setAllowTF32CuDNN(on);
}

void seed_default_generators(uint64_t seed, c10::Device device) {
  for (at::Generator& generator : default_generators(device)) {
    std::lock_guard lock(generator.mutex());
    generator.set_current_seed(seed);
  }
}

DefaultGenerators::DefaultGenerators(c10::Device device) {
  for (at::Generator& generator : default_generators(device)) {
    std::lock_guard lock(generator.mutex());
    states_.emplace_back(generator, generator.get_state());
  }
}

void DefaultGenerators::restore() const {
  for (auto [generator, state] : states_) {
    std::lock_guard lock(generator.mutex());
    generator.set_state(state);
  }
}

bool DefaultGenerators::host_has_drawn() const {
  auto [generator, state] = states_.front();
  std::lock_guard lock(generator.mutex());
  return !generator.get_state().equal(state);
}

void ProcessStateSwitch::enter(int rank) {
  if (rank == current_) return;
  const MemoryScopePause pause;
  if (current_ >= 0) {
    Rank& before = ranks_[static_cast<std::size_t>(current_)];
    before.generators.emplace(before.device);
  }
  if (const auto& own = ranks_[static_cast<std::size_t>(rank)].generators) own->restore();
  Meter::set_owner(rank);
  current_ = rank;
}

}  // namespace tutti
