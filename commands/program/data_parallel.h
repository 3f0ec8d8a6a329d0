#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>

#include "collectives/group.h"
#include "sharding/catalog.h"
#include "training/state.h"

namespace tutti {

// The ranks of a program's own training loop, on CPUs: the ranks of mpirun, else a single rank. MPI starts in
// the constructor, once in a process, and ends in the destructor. Constructor and destructor are collective.
// If an exception leaves the program on one rank, mpirun ends the other ranks (run_program prints the
// exception).
class Ranks {
 public:
  // `threads`: of each rank's kernels.
  explicit Ranks(int threads = 1);
  // Ranks of this process, each on a thread of its own, by LocalWorld (collectives/local/world.h).
  explicit Ranks(std::unique_ptr<GroupFactory> factory);
  ~Ranks();
  Ranks(const Ranks&) = delete;

  int rank() const { return factory_->rank(); }
  int size() const { return factory_->size(); }
  GroupFactory& factory() { return *factory_; }

 private:
  struct Mpi;
  std::unique_ptr<Mpi> mpi_;  // null: without mpirun
  std::unique_ptr<GroupFactory> factory_;
};

// Trains a model on all ranks in a program's own loop: gathers sharded parameters, sums gradients, applies
// running statistics, in the order and with the bits of the Trainer. All ranks call alike, in this order:
//
//   begin_step; for each microbatch begin_microbatch, forward, loss, backward; end_step; the optimizer's step
//
// A rank may have fewer microbatches than other ranks, or none. examples/cpp/own_loop.cpp is an example.
class DataParallel {
 public:
  // The sums over all ranks of a step.
  struct Sums {
    double weight = 0;    // of the losses: the divisor of the gradients, for Optimizer::step
    double loss = 0;      // mean
    bool finite = false;  // losses and gradients; else skip the update
  };

  // `state` has a model and a seed. The model gets its initial values, and `state` its topology, parameters,
  // buffers, views (this rank's rows under a strategy) and services; make the optimizer of state.views
  // afterwards. Ranks and state must outlive this object. Throws UserError.
  DataParallel(Ranks& ranks, State& state, const ShardingSettings& sharding = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;

  // Drops old gradients and gathers parameters as the strategy says. `microbatches`: the most on a rank. If
  // the loop has left the step before with an exception, that step is skipped on all ranks.
  void begin_step(int64_t microbatches = 1);
  // `first_sample`: the place of the microbatch in the batch of all ranks (Sampler::first_sample), by which
  // dropout draws.
  void begin_microbatch(int64_t first_sample);
  // Backward of a mean loss, a scalar, times its weight: the number of samples that the loss is a mean over.
  void backward(const at::Tensor& loss, double weight);
  // Gives state.views their gradients: sums over ranks of weighted losses, as Optimizer::step(weight)
  // expects. Also sets state.grad_scale and state.train_loss.
  Sums end_step();

  // Writes all parameters and persistent buffers on rank 0, with the names of `tutti export --to`. Between
  // steps.
  // Throws OperatingError.
  void save_weights(const std::string& path) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace tutti
