// Graphs of the test device: stricter than CUDA's.

#include "tensors/kernels/graph.h"

#include <memory>

#include "collectives/device_entry.h"
#include "tests/device/streams_for_tests.h"

namespace tutti::test_device {
namespace {

using at::Tensor;

class DeviceGraphs : public DeviceTest {
 protected:
  std::unique_ptr<DeviceGraph> recorded(const std::function<void()>& work) {
    std::unique_ptr<DeviceGraph> graph(tutti_device_make_graph(0));
    on(own_, [&] { record_graph(*graph, work); });
    return graph;
  }
  void launch(DeviceGraph& graph) {
    on(own_, [&] { graph.launch(); });
  }
  template <class Work>
  auto here(Work work) {
    return on(own_, work);
  }
  double sum_of(const Tensor& x) {
    return here([&] { return x.sum().item<double>(); });
  }

  c10::Stream own_ = side_stream();
};
TUTTI_IN_BOTH_MODES(DeviceGraphs);

TEST_P(DeviceGraphs, DoTheirWorkAtEachLaunch) {
  const Tensor x = here([] { return at::ones({10}, floats()); });
  Tensor product;
  const auto graph = recorded([&] {
    x.add_(1);
    product = x * 3;
  });
  EXPECT_EQ(sum_of(x), 10);
  EXPECT_TRUE(std::isnan(sum_of(product)));
  launch(*graph);
  EXPECT_EQ(sum_of(product), 60);
  here([&] { x.fill_(4); });
  launch(*graph);
  launch(*graph);
  EXPECT_EQ(sum_of(x), 60);
  EXPECT_EQ(sum_of(product), 180);
  EXPECT_EQ(counters().graphs, 3);
}

TEST_P(DeviceGraphs, HaveBackwardAndLists) {
  const Tensor weight = here([] { return at::full({2, 3}, 0.5, floats()).requires_grad_(); });
  const Tensor input = here([] { return at::ones({4, 3}, floats()); });
  Tensor gradient;
  const auto graph = recorded([&] {
    const auto halves = at::linear(input, weight).split(2);
    at::stack(at::unbind(halves[0] * halves[1])).sum().backward();
    gradient = std::exchange(weight.mutable_grad(), Tensor());
  });
  for (const double value : {1.0, 2.0}) {
    here([&] { input.fill_(value); });
    launch(*graph);
    EXPECT_EQ(sum_of(gradient), 6 * 2 * 2 * 1.5 * value * value);
  }
}

TEST_P(DeviceGraphs, DrawAnewAtEachLaunch) {
  Tensor drawn;
  const auto graph = recorded([&] { drawn = at::rand({100}, floats()); });
  launch(*graph);
  const double first = sum_of(drawn);
  launch(*graph);
  EXPECT_NE(sum_of(drawn), first);
}

TEST_P(DeviceGraphs, KeepTheirMemory) {
  const int64_t before = used_bytes(0);
  Tensor product;
  const Tensor x = here([] { return at::ones({1000}, floats()); });
  auto graph = recorded([&] {
    Tensor gone = x.abs();
    gone = Tensor();
    product = x.neg();
  });
  EXPECT_EQ(used_bytes(0), before + 8000);
  launch(*graph);
  const Tensor other = here([] { return at::zeros({1000}, floats()); });
  EXPECT_EQ(sum_of(product), -1000);
  product = Tensor();
  EXPECT_EQ(used_bytes(0), before + 12000);
  launch(*graph);
  EXPECT_EQ(sum_of(other), 0);
  graph.reset();
  EXPECT_EQ(used_bytes(0), before + 8000);
}

TEST_P(DeviceGraphs, RefuseWhatWouldWaitForTheDevice) {
  const Tensor x = here([] { return at::ones({4}, floats()); });
  const std::vector<std::function<void()>> all{[&] { x.sum().item<double>(); },       [&] { x.nonzero(); },
                                               [&] { x.masked_select(x > 0); },       [&] { x.to(at::kCPU); },
                                               [&] { at::ones({4}).to(x.device()); }, [&] { event_of(own_); },
                                               [&] { guard().synchronizeDevice(0); }};
  for (const auto& work : all) EXPECT_THROW(recorded(work), c10::Error);
  EXPECT_EQ(sum_of(x), 4);
  const auto graph = recorded([&] { x.add_(1); });
  launch(*graph);
  EXPECT_EQ(sum_of(x), 8);
}

TEST_P(DeviceGraphs, AreKnownWhileTheyAreRecorded) {
  bool known = false;
  EXPECT_FALSE(records_graph());
  recorded([&] { known = records_graph(); });
  EXPECT_TRUE(known);
  EXPECT_FALSE(records_graph());
}

TEST_P(DeviceGraphs, NeedAStreamOfTheirOwn) {
  const std::unique_ptr<DeviceGraph> graph(tutti_device_make_graph(0));
  EXPECT_THROW(graph->begin(), c10::Error);
}

TEST_P(DeviceGraphs, AreInTheOrderOfTheirStream) {
  const Tensor x = here([] { return at::ones({10}, floats()); });
  const auto graph = recorded([&] { x.add_(1); });
  on(side_stream(), [&] {
    const Tensor read = x * 2;
    launch(*graph);
  });
  EXPECT_THAT(take_findings(), testing::SizeIs(testing::Ge(2)));  // of the read, and of the launch
}

TEST_P(DeviceGraphs, FindMemoryThatIsGone) {
  Tensor x = here([] { return at::ones({10}, floats()); });
  Tensor product;
  const auto graph = recorded([&] { product = x * 2; });
  x = Tensor();
  launch(*graph);
  EXPECT_THAT(take_findings(), testing::ElementsAre(testing::HasSubstr("memory that is free")));
}

}  // namespace
}  // namespace tutti::test_device
