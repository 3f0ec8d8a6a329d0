#include "tests/training/sharded_states.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "collectives/local/group.h"
#include "tests/training/scripted_services.h"

namespace tutti {
namespace {

SumOverRanks sum_over(std::shared_ptr<Group> group) {
  return [group = std::move(group)](const at::Tensor& values) {
    const WorkPtr work = group->all_reduce(values, "sum over shards");
    const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!work->done()) {
      TUTTI_ASSERT(std::chrono::steady_clock::now() < latest, "a rank takes no part in a sum");
      std::this_thread::yield();
    }
  };
}

void share_out(const std::vector<WholeParameter>& parameters, const Share& share, State& state) {
  state.topology.share = share;
  state.topology.rank = share.index;
  state.topology.world = share.pieces;
  for (const WholeParameter& one : parameters) {
    const at::Tensor weight = one.weight.clone(at::MemoryFormat::Preserve);
    state.views.push_back(shared_view(one.name, weight, share));
    state.views.back().grad = rows_of(one.grad, share);
  }
}

}  // namespace

std::vector<WholeParameter> many_parameters(at::ScalarType dtype) {
  at::manual_seed(2);
  std::vector<WholeParameter> all;
  const auto add = [&](const at::Tensor& weight, const at::Tensor& grad) {
    all.push_back({"p" + std::to_string(all.size()), weight.to(dtype), (grad * 7).to(dtype)});
  };
  for (const Shape& shape : std::vector<Shape>{
           {}, {1}, {2}, {33}, {2000}, {1003, 3}, {70, 40}, {9, 3, 3, 3}, {1, 600}, {}, {3, 5000}})
    add(at::randn(shape), at::randn(shape));
  const auto channels_last = [] {
    return at::randn({17, 8, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
  };
  add(channels_last(), channels_last());
  return all;
}

at::Tensor rows_of(const at::Tensor& whole, const Share& share) {
  return shared_view("", whole, share).tensor.clone(at::MemoryFormat::Preserve);
}

void run_on_shares(const std::vector<WholeParameter>& parameters, int ranks,
                   const std::function<void(State&)>& work) {
  const auto fabric = LocalFabric::make(ranks);
  std::vector<State> states(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    State& state = states[static_cast<std::size_t>(rank)];
    share_out(parameters, {ranks, rank}, state);
    if (ranks > 1) {
      const auto services = std::make_shared<ScriptedServices>();
      services->of_shards = sum_over(fabric->group(rank));
      state.services = services;
    }
    threads.emplace_back([&work, &state] { work(state); });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<at::Tensor> joined_over_shares(const std::vector<WholeParameter>& parameters, int ranks,
                                           const std::function<std::vector<at::Tensor>(State&)>& work) {
  std::vector<std::vector<at::Tensor>> of_rank(static_cast<std::size_t>(ranks));
  run_on_shares(parameters, ranks,
                [&](State& state) { of_rank[static_cast<std::size_t>(state.topology.rank)] = work(state); });
  std::vector<at::Tensor> joined;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    std::vector<at::Tensor> parts;
    for (const auto& tensors : of_rank) parts.push_back(tensors.at(p));
    const bool is_scalar = parts[0].dim() == 0;
    for (const at::Tensor& part : parts) EXPECT_TRUE(!is_scalar || part.equal(parts[0])) << p;
    joined.push_back(is_scalar ? parts[0] : at::cat(parts));
  }
  return joined;
}

}  // namespace tutti
