#include <ATen/Parallel.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "tests/device/streams_for_tests.h"

namespace tutti::test_device {
namespace {

using at::Tensor;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

// Two tensors of zeros that all streams may use, and two streams.
class TwoStreams : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    a = at::zeros({64}, floats());
    b = at::zeros({64}, floats());
    guard().synchronizeDevice(0);
    reset_counters();
  }
  float first(const Tensor& tensor, c10::Stream stream) {
    guard().synchronizeStream(stream);
    return on(stream, [&] { return tensor[0].item<float>(); });
  }
  Tensor a, b;
  c10::Stream one = side_stream(), two = side_stream();
};
TUTTI_IN_BOTH_MODES(TwoStreams);

TEST_P(TwoStreams, MissingWaitIsFound) {
  on(one, [&] { a.fill_(3); });
  on(two, [&] { b.copy_(a); });
  EXPECT_THAT(
      take_findings(),
      ElementsAre(AllOf(HasSubstr("copy on device on stream " + std::to_string(two.id())),
                        HasSubstr(" reads what aten::fill_.Scalar on stream " + std::to_string(one.id())),
                        HasSubstr(" writes, without waiting for it"))));
  EXPECT_EQ(first(b, two), is_late() ? 0 : 3);
}

TEST_P(TwoStreams, WriteAfterAReadIsFoundToo) {
  on(one, [&] { b.copy_(a); });
  on(two, [&] { a.fill_(3); });
  EXPECT_THAT(take_findings(), ElementsAre(HasSubstr("writes what copy on device on stream")));
}

TEST_P(TwoStreams, ResultOfAKernelIsItsWrite) {
  Tensor dropped;
  on(one, [&] { dropped = std::get<0>(at::native_dropout(a, 0.5, true)); });
  on(two, [&] { b.copy_(dropped); });
  EXPECT_THAT(take_findings(), ElementsAre(HasSubstr(" reads what aten::")));
  guard().synchronizeDevice(0);
}

TEST_P(TwoStreams, ReadsMayBeUnordered) {
  Tensor c = at::zeros({64}, floats());
  guard().synchronizeDevice(0);
  on(one, [&] { b.copy_(a); });
  on(two, [&] { c.copy_(a); });
}

TEST_P(TwoStreams, DifferentBytesMayBeUnordered) {
  on(one, [&] { a.narrow(0, 0, 32).fill_(1); });
  on(two, [&] { a.narrow(0, 32, 32).fill_(2); });
}

TEST_P(TwoStreams, EventOrders) {
  on(one, [&] { a.fill_(3); });
  event_of(one).block(two);
  on(two, [&] { b.copy_(a); });
  EXPECT_EQ(first(b, two), 3);
}

TEST_P(TwoStreams, EventDoesNotOrderWhatIsLaunchedAfterIt) {
  const c10::Event early = event_of(one);
  on(one, [&] { a.fill_(3); });
  early.block(two);
  on(two, [&] { b.copy_(a); });
  EXPECT_THAT(take_findings(), SizeIs(1));
}

TEST_P(TwoStreams, HostWaitOrders) {
  on(one, [&] { a.fill_(3); });
  guard().synchronizeStream(one);
  on(two, [&] { b.copy_(a); });
  EXPECT_EQ(first(b, two), 3);
}

TEST_P(TwoStreams, BlockFreedWhileAnotherStreamUsesItIsFound) {
  for (const bool recorded : {false, true}) {
    Tensor x = at::full({4096}, 1.0, floats());
    Tensor y = at::zeros({4096}, floats());
    event_of(guard().getStream(device())).block(one);
    on(one, [&] { y.copy_(x); });
    if (recorded) x.record_stream(one);
    x = Tensor();
    const Tensor z = at::full({4096}, 9.0, floats());
    const auto findings = take_findings();
    ASSERT_THAT(findings, SizeIs(recorded ? 0 : 1));
    for (const std::string& one_of_them : findings)
      EXPECT_THAT(one_of_them, HasSubstr("aten::fill_.Scalar on stream 0 of device 0 writes what"));
    guard().synchronizeStream(guard().getStream(device()));
    EXPECT_EQ(first(y, one), !recorded && is_late() ? 9 : 1);
    guard().synchronizeDevice(0);
  }
}

TEST_P(TwoStreams, BlockMayBeReusedIfTheFreeingThreadHasWaited) {
  Tensor x = at::full({4096}, 1.0, floats());
  event_of(guard().getStream(device())).block(one);
  on(one, [&] { b.copy_(x.narrow(0, 0, 64)); });
  on_a_thread([&] {
    guard().synchronizeStream(one);
    x = Tensor();
  });
  at::full({4096}, 9.0, floats());
}

TEST_P(TwoStreams, FreedMemoryOfALaunchIsFound) {
  Tensor x = at::full({4096}, 1.0, floats());
  const void* const data = x.const_data_ptr();
  x = Tensor();
  launch("late reader", {{data, 4096, false}}, [] {});
  EXPECT_THAT(take_findings(), ElementsAre("late reader on stream 0 of device 0 reads memory that is free"));
}

TEST_P(TwoStreams, WaitOfAThreadCountsForAnotherOnlyThroughAJoin) {
  on(one, [&] { a.fill_(3); });
  HostClock message;
  on_a_thread([&] {
    guard().synchronizeStream(one);
    message = clock_of_this_thread();
  });
  on(two, [&] { b.copy_(a); });
  EXPECT_THAT(take_findings(), SizeIs(1));
  join_this_thread(message);
  on(two, [&] { b.copy_(a); });
  EXPECT_THAT(take_findings(), IsEmpty());
  EXPECT_EQ(first(b, two), 3);
}

TEST_P(TwoStreams, SnapshotsCarryTheClock) {
  on(one, [&] { a.fill_(3); });
  HostClock snapshot;
  on_a_thread([&] {
    guard().synchronizeStream(one);
    snapshot = clock_of_this_thread();
  });
  join_this_thread(snapshot);
  on(two, [&] { b.copy_(a); });
}

TEST_P(TwoStreams, NewThreadKnowsNothing) {
  on(one, [&] { a.fill_(3); });
  guard().synchronizeStream(one);
  on_a_thread([&] { on(two, [&] { b.copy_(a); }); });
  EXPECT_THAT(take_findings(), Contains(HasSubstr(" reads what aten::fill_.Scalar on stream ")));
}

TEST_P(TwoStreams, ThreadsLaunchOnOneStreamInOrder) {
  const HostClock creator = clock_of_this_thread();
  on_a_thread([&] {
    join_this_thread(creator);
    on(one, [&] { a.fill_(3); });
  });
  on(one, [&] { b.copy_(a); });
  EXPECT_EQ(first(b, one), 3);
}

TEST_P(TwoStreams, LaunchedKernelsTakePart) {
  const int64_t bytes = 64 * 4;
  on(one, [&] {
    launch("fill with ones", {{a.const_data_ptr(), bytes, true}}, [to = shadow(a.mutable_data_ptr())] {
      const std::vector<float> ones(64, 1.0F);
      std::memcpy(to, ones.data(), 64 * 4);
    });
  });
  on(two, [&] { b.copy_(a); });
  EXPECT_THAT(take_findings(), ElementsAre(HasSubstr(" reads what fill with ones on stream ")));
  EXPECT_EQ(first(a, one), 1);
}

TEST_P(TwoStreams, WaitsAreCountedByCause) {
  on(one, [&] { a.fill_(3); });
  c10::Event event = event_of(one);
  event.synchronize();
  event.synchronize();  // known to be over
  on(two, [&] { b.fill_(3); });
  guard().synchronizeStream(two);
  b.sum().item<float>();
  b.cpu();
  EXPECT_THAT(host_waits(), ElementsAre(Pair("aten::_local_scalar_dense", 1), Pair("copy to host", 1),
                                        Pair("event", 1), Pair("stream", 1)));
  EXPECT_EQ(counters().host_waits, 4);
  EXPECT_EQ(counters().copies_to_host, 1);
}

TEST_P(TwoStreams, KernelsAreCounted) {
  a.fill_(3);
  a.add_(b);
  EXPECT_EQ(counters().kernels, 2);
  EXPECT_EQ(counters().late_kernels, is_late() ? 2 : 0);
  EXPECT_THAT(kernels_seen(), ElementsAre(Pair("aten::add.out", 1), Pair("aten::fill_.Scalar", 1)));
}

TEST_P(TwoStreams, EventIsReadyAfterSomeQueries) {
  set_event_latency(3);
  on(one, [&] { a.fill_(3); });
  const c10::Event event = event_of(one);
  int queries = 0;
  while (!event.query()) ++queries;
  EXPECT_EQ(queries, 3);
  on(two, [&] { b.copy_(a); });  // ordered by the answer
  queries = 0;
  while (!guard().queryStream(two)) ++queries;
  EXPECT_EQ(queries, 3);
  EXPECT_EQ(counters().host_waits, 0);
}

TEST_P(TwoStreams, HostTensorsAreReadAtTheLaunch) {
  Tensor host = at::ones({64}), scalar = at::ones({});
  a.copy_(host, /*non_blocking=*/true);
  b.add_(scalar);
  host.fill_(7);
  scalar.fill_(7);
  EXPECT_EQ(a.cpu()[0].item<float>(), 1);
  EXPECT_EQ(b.cpu()[0].item<float>(), 1);
}

TEST_P(TwoStreams, CopyBetweenDevicesIsOrderedOnBoth) {
  Tensor there = at::zeros({64}, floats(1));
  a.fill_(3);
  there.copy_(a);
  there.add_(1);
  EXPECT_EQ(there.cpu()[0].item<float>(), 4);
}

TEST_P(TwoStreams, ThreadsOfSeveralDevicesRunAtOnce) {
  std::vector<std::thread> threads;
  std::vector<float> sums(3);
  for (int index = 0; index < 3; ++index) {
    threads.emplace_back([index, &sums] {
      at::set_num_threads(1);
      const c10::DeviceGuard on_device(device(index + 1));
      Tensor sum = at::zeros({1000}, floats(index + 1));
      for (int i = 0; i < 200; ++i) sum = sum + at::ones({1000}, floats(index + 1)) * 2;
      sums[static_cast<std::size_t>(index)] = sum[999].item<float>();
    });
  }
  for (std::thread& one_of_them : threads) one_of_them.join();
  EXPECT_THAT(sums, ElementsAre(400, 400, 400));
}

TEST_P(TwoStreams, KernelsOfAStreamRunOneAfterAnotherWhoeverRunsThem) {
  std::atomic<bool> both_wait{false}, first_is_done{false}, in_order{true};
  std::thread other([&] {
    while (!both_wait && is_late()) std::this_thread::yield();
    guard().synchronizeStream(one);
  });
  on(one, [&] {
    launch("first", {}, [&] {
      both_wait = true;
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      first_is_done = true;
    });
    launch("second", {}, [&] { in_order = first_is_done.load(); });
  });
  guard().synchronizeStream(one);
  other.join();
  EXPECT_TRUE(in_order);
}

TEST_P(TwoStreams, ErrorOfALateKernelComesWithAWait) {
  const auto fails = [&] {
    launch("fails", {}, [] { TORCH_CHECK(false, "on purpose"); });
    guard().synchronizeDevice(0);
  };
  EXPECT_THROW(fails(), c10::Error);
  guard().synchronizeDevice(0);
}

}  // namespace
}  // namespace tutti::test_device
