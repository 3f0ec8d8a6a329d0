#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <map>
#include <string>

#include "tests/sim/planted_bugs/broken_group.h"
#include "tests/sim/planted_bugs/broken_listener.h"
#include "tests/sim/planted_bugs/planted_bugs.h"
#include "training/state.h"

namespace tutti {
namespace {

const std::string kFull = "[sharding]\nstrategy = 'full'\n";
const std::string kGradients = "[sharding]\nstrategy = 'gradients'\n";
const std::string kOptimizer = "[sharding]\nstrategy = 'optimizer'\n";
const std::string kHybrid = "[sharding]\nstrategy = 'hybrid'\nshard_size = 2\n";

// Over at once, and has done nothing.
class NoWork final : public Work {
 public:
  bool done() override { return true; }
  const CollectiveHeader& header() const override { return header_; }
  bool finite() const override { return true; }

 private:
  CollectiveHeader header_;
};

// The last rank serves the rows that it had a step ago.
class ServesAStaleShard final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    if (rank() + 1 < size()) return below_->all_gather(input, out, cut, label);
    at::Tensor& served = served_[label];
    if (!served.defined()) served = input.clone();
    at::Tensor stale = served.clone();
    served.copy_(input);
    return below_->all_gather(std::move(stale), out, cut, label);
  }

 private:
  std::map<std::string, at::Tensor> served_;
};

// A rank that has no memory for a unit does not serve it either.
class StopsDrainingEarly final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    if (!out.defined()) return std::make_unique<NoWork>();
    return below_->all_gather(input, out, cut, label);
  }
};

// Whole parameters are those of the first steps.
class GathersNoMore final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_gather(at::Tensor input, at::Tensor out, CutPtr cut, const std::string& label) override {
    if (!label.starts_with("parameters") || ++calls_ <= 10) return below_->all_gather(input, out, cut, label);
    const at::Tensor lost = out.clone();
    return below_->all_gather(lost, lost, cut, label);
  }

 private:
  int calls_ = 0;
};

// Each copy of the model trains on its own gradients.
class LetsReplicasPart final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    if (label.ends_with("of all replicas")) return std::make_unique<NoWork>();
    return below_->all_reduce(inout, label);
  }
};

// A rank does not report an overflow that only it knows.
class KeepsAnOverflow final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  WorkPtr all_reduce(at::Tensor inout, const std::string& label) override {
    if (label == "verdict") inout.select(0, place_of(&Verdict::overflow)).zero_();
    return below_->all_reduce(inout, label);
  }
};

// In one step the gradient of one row, which the last rank has, is not a number; the loss is.
class BreaksAGradient : public Algorithm {
 public:
  std::string name() const override { return "BreaksAGradient"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kAfterLoss && state.timestamp.batch == 4;
  }
  void apply(Event, State& state, Logger&) override {
    const at::Tensor& weight = state.parameters.front().parameter->tensor;
    const at::Tensor last = weight.select(0, weight.size(0) - 1).sum();
    state.loss = state.loss + at::sqrt(last * 0.0F) * 0.0F;
  }
};

SimSeams overflow(const std::function<SimSeams()>& more) {
  SimSeams seams = algorithm_of_each_rank<BreaksAGradient>()();
  if (more) seams.group = more().group;
  return seams;
}

// After resuming each rank but the first has its rows one place further.
class MovesRowsOnResume final : public Algorithm {
 public:
  std::string name() const override { return "MovesRowsOnResume"; }
  bool match(Event event, const State& state) const override {
    return event == Event::kFitStart && state.timestamp.batch > 0 && state.topology.rank > 0;
  }
  void apply(Event, State& state, Logger&) override {
    const at::NoGradGuard no_grad;
    for (ParamView& view : state.views)
      if (view.tensor.dim() > 0) view.tensor.copy_(view.tensor.roll(1, 0));
  }
};

}  // namespace

std::vector<Bug> bugs_of_sharding() {
  return {
      {"AStaleShardIsServed", "", group_bug<ServesAStaleShard>(), {}, "other bits", kFull},
      {"ADrainStopsEarly", "out_of_memory", group_bug<StopsDrainingEarly>(), {}, "", kFull},
      {"RowsAreOffByOneOnResuming", "death", algorithm_of_each_rank<MovesRowsOnResume>(), {}, "", kFull},
      {"ReplicasPart", "", group_bug<LetsReplicasPart>(), {}, "holds other weights than", kHybrid, 4},
      {"ARankKeepsAnOverflowToItself", "", [] { return overflow(group_bug<KeepsAnOverflow>()); },
       [] { return overflow({}); }, "", kGradients},
      {"WholeParametersAreNotRefreshed", "", group_bug<GathersNoMore>(), {}, "other bits", kOptimizer},
  };
}

}  // namespace tutti
