#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <bit>
#include <optional>
#include <string>
#include <utility>

#include "actors/compute/portion_runner.h"
#include "runtime/error.h"
#include "tensors/kernels/graph.h"
#include "tensors/memory/meter.h"
#include "tensors/memory/out_of_memory.h"
#include "tensors/memory/torch_error.h"
#include "tensors/process_state.h"

namespace tutti {
namespace {

constexpr int kWarmUps = 3;  // libraries choose their kernels in the first portions
constexpr int64_t kMostMasks = 1024;

void add_layers(const Layer& layer, std::vector<const void*>& all) {
  for (const auto& slot : layer.slots()) {
    if (slot->empty()) continue;
    all.push_back(&slot->layer());
    add_layers(slot->layer(), all);
  }
}

// Forward, loss and backward of a portion as a graph of the device: the host launches the graph with one call
// ([train] cuda_graphs). No listener may act on the events between. Results have the bits of the work without
// a graph, lie in the graph's memory, and are valid until the next portion.
//
// The work is recorded once kWarmUps portions in a row were alike. The device reads the inputs that change
// from step to step: the batch, the factor of the loss, the keys of dropout's masks. Work that needs other
// numbers of the host is refused, once, with a warning, and done without a graph from then on.
class GraphRunner final : public PortionRunner {
 public:
  GraphRunner(const Parts& with, Log& log) : PortionRunner(with), state_(with.state), log_(log) {}

  void run(const Portion& portion, Pass& pass) override {
    if (!launches(portion, pass)) PortionRunner::run(portion, pass);
  }
  void drop() override { graph_.reset(); }

 private:
  struct Leaf {
    std::string name;
    Shape sizes, strides;
    at::ScalarType dtype;
    friend bool operator==(const Leaf&, const Leaf&) = default;
  };
  // What the recorded work depends on.
  struct Likeness {
    std::vector<Leaf> batch;
    std::vector<const void*> addresses;  // of parameters, buffers and layers
    std::vector<bool> trained;
    friend bool operator==(const Likeness&, const Likeness&) = default;
  };
  struct Recorded {
    std::unique_ptr<DeviceGraph> graph;  // freed after its tensors
    Likeness of;
    Batch batch;                     // what the graph reads
    at::Tensor numbers;              // int64 [1 + 2 * kMostMasks]: the factor's bits, then keys
    std::vector<std::string> masks;  // their names, in the order of the keys
    Outputs outputs;                 // what the graph writes
    at::Tensor loss;
    std::vector<RunningStatistics> statistics;
    std::vector<at::Tensor> gradients;  // by parameter
  };

  bool launches(const Portion& portion, Pass& pass);
  std::string listener() const;
  Likeness likeness() const;
  bool record();
  void record_work();
  at::Tensor key_of_mask(const std::string& name);
  void fill(double factor);
  void give(bool alone);

  State& state_;
  Log& log_;
  bool refused_ = false;
  int waited_ = 0;  // portions
  Likeness seen_;   // of the last portions that were no launches
  int alike_ = 0;   // their number
  std::optional<Recorded> graph_;
};

// False if the caller must do the work. Throws c10::OutOfMemoryError where recording does.
bool GraphRunner::launches(const Portion& portion, Pass& pass) {
  if (refused_) return false;
  if (const std::string who = listener(); !who.empty()) {
    if (waited_++ == kWarmUps) log_.warning("train.cuda_graphs has no effect while " + who);
    return false;
  }
  const double weight = loss_weight();
  if (weight == 0) return false;
  Likeness now = likeness();
  if (!graph_ || now != graph_->of) {
    if (now != seen_) alike_ = 0;
    seen_ = std::move(now);
    if (alike_++ < kWarmUps || !record()) return false;
  }
  alike_ = 0;
  fill(backward_factor(state_, weight, pass));
  graph_->graph->launch();
  give(/*alone=*/portion.index == 0 && portion.last);
  begin_backward(portion, pass);
  if (with_.metrics.any()) with_.metrics.update(state_, state_.batch, state_.outputs);
  note_loss(portion, weight, pass);
  return true;
}

// Who acts at an event of a portion: "LabelSmoothing acts at before_loss"; "": nobody.
std::string GraphRunner::listener() const {
  const Engine& engine = with_.engine;
  if (!engine.listens()) return "";
  using enum Event;
  for (const Event event :
       {kBeforeForward, kAfterForward, kBeforeLoss, kAfterLoss, kBeforeBackward, kAfterBackward}) {
    if (!engine.acts(event)) continue;
    std::string who = "a listener";
    for (const auto& callback : engine.callbacks())
      if (callback->acts(event)) who = callback->name();
    for (const auto& algorithm : engine.algorithms())
      if (algorithm->match(event, state_)) who = algorithm->name();
    return who + " acts at " + name(event);
  }
  return "";
}

GraphRunner::Likeness GraphRunner::likeness() const {
  Likeness now;
  for (const auto& [name, leaf] : state_.batch.leaves())
    now.batch.push_back({name, leaf.sizes().vec(), leaf.strides().vec(), leaf.scalar_type()});
  for (const auto& named : state_.parameters) {
    now.addresses.push_back(named.parameter->tensor.const_data_ptr());
    now.trained.push_back(named.parameter->tensor.requires_grad());
  }
  for (const auto& named : state_.buffers) now.addresses.push_back(named.buffer->tensor.const_data_ptr());
  add_layers(*state_.model, now.addresses);
  return now;
}

// The device's cache is emptied first: a graph cannot use what it holds.
bool GraphRunner::record() {
  drop();
  Meter::empty_device_cache(state_.device.memory_slot);
  const Batch given = state_.batch;
  const DefaultGenerators generators(state_.device.where);
  std::vector<at::Tensor> before;
  for (auto& named : state_.parameters)
    before.push_back(std::exchange(named.parameter->tensor.mutable_grad(), at::Tensor()));
  std::exception_ptr error;
  try {
    record_work();
    if (generators.host_has_drawn()) throw UserError("numbers of the host's generator are drawn");
  } catch (...) {
    error = std::current_exception();
  }
  generators.restore();  // the work that follows draws what was drawn here
  ForwardContext& context = with_.context;
  context.key_on_device = {};
  context.begin_pass(context.first_sample);
  state_.batch = given;
  for (std::size_t p = 0; p < before.size(); ++p)
    state_.parameters[p].parameter->tensor.mutable_grad() = before[p];
  if (!error) {
    log_.info("forward and backward of a microbatch are a graph of the device from step " +
              std::to_string(state_.timestamp.batch + 1) + " on");
    return true;
  }
  state_.outputs = {};
  state_.loss = at::Tensor();
  with_.statistics.clear();
  with_.sweep.run();  // what autograd still holds
  drop();
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& why) {
    if (is_lack_of_memory(why)) {
      log_.warning(
          "memory has run out while a graph was recorded, which keeps memory of its own; without "
          "train.cuda_graphs more is left");
      throw;
    }
    refused_ = true;
    log_.warning("train.cuda_graphs has no effect: " + one_line(why));
  }
  return false;
}

void GraphRunner::record_work() {
  Recorded& recorded = graph_.emplace();
  recorded.graph = make_graph(state_.device.where.index());
  if (!recorded.graph) throw UserError("this kind of device has no graphs");
  state_.batch = recorded.batch = state_.batch.map([](const at::Tensor& leaf) { return leaf.clone(); });
  recorded.numbers = at::zeros({1 + 2 * kMostMasks}, state_.device.options(at::kLong));
  with_.context.key_on_device = [this](const std::string& name) { return key_of_mask(name); };
  record_graph(*recorded.graph, [&] {
    state_.outputs = state_.forward(state_.batch);
    state_.loss = state_.loss_of(state_.outputs, state_.batch);
    if (!with_.metrics.any()) state_.outputs = {};
    const at::Tensor root = wide(state_.loss);
    root.backward(at::empty_like(root).copy_(recorded.numbers.narrow(0, 0, 1).view(at::kDouble).squeeze(0)));
  });
  recorded.of = std::exchange(seen_, {});
  recorded.outputs =
      std::exchange(state_.outputs, {}).map([](const at::Tensor& leaf) { return leaf.detach(); });
  recorded.loss = std::exchange(state_.loss, at::Tensor()).detach();
  recorded.statistics = std::exchange(with_.statistics, {});
  for (auto& named : state_.parameters)
    recorded.gradients.push_back(std::exchange(named.parameter->tensor.mutable_grad(), at::Tensor()));
}

at::Tensor GraphRunner::key_of_mask(const std::string& name) {
  const auto place = std::ssize(graph_->masks);
  if (place == kMostMasks)
    throw UserError("a microbatch has more than " + std::to_string(kMostMasks) + " masks");
  graph_->masks.push_back(name);
  return graph_->numbers.narrow(0, 1 + 2 * place, 2);
}

void GraphRunner::fill(double factor) {
  const auto from = state_.batch.leaves(), to = graph_->batch.leaves();
  for (std::size_t i = 0; i < from.size(); ++i) at::Tensor(to[i].second).copy_(from[i].second);
  const int64_t count = 1 + 2 * std::ssize(graph_->masks);
  const at::Tensor staged = staging_memory({count}, at::kLong, state_.device);
  auto* next = staged.mutable_data_ptr<int64_t>();
  *next++ = std::bit_cast<int64_t>(factor);
  const ForwardContext& context = with_.context;
  for (const std::string& name : graph_->masks) {
    *next++ = static_cast<int64_t>(context.draws(name)->key_of_batch().state());
    *next++ = context.first_sample;
  }
  graph_->numbers.narrow(0, 0, count).copy_(staged, /*non_blocking=*/true);
}

// As backward does it with a leaf that has a gradient.
void GraphRunner::give(bool alone) {
  const at::NoGradGuard no_grad;
  state_.outputs = graph_->outputs;
  state_.loss = graph_->loss;
  with_.statistics = graph_->statistics;
  for (std::size_t p = 0; p < graph_->gradients.size(); ++p) {
    if (!graph_->gradients[p].defined()) continue;
    at::Tensor& gradient = state_.parameters[p].parameter->tensor.mutable_grad();
    if (gradient.defined())
      gradient.add_(graph_->gradients[p]);
    else
      gradient = alone ? graph_->gradients[p] : graph_->gradients[p].clone();
  }
}

}  // namespace

std::unique_ptr<PortionRunner> make_graph_runner(const PortionRunner::Parts& with, Log& log) {
  return std::make_unique<GraphRunner>(with, log);
}

}  // namespace tutti
