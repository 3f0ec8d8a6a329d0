#include <csignal>
#include <cstdlib>
#include <vector>

#include "collectives/device_entry.h"
#include "tests/device/streams_for_tests.h"

namespace tutti::test_device {
namespace {

using at::Tensor;
using testing::AllOf;
using testing::HasSubstr;

template <class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "";
}

class HostAccess : public DeviceTest {
 protected:
  void SetUp() override {
    tutti_device_start("");
    DeviceTest::SetUp();
  }
};
TUTTI_IN_BOTH_MODES(HostAccess);
using HostAccessDeathTest = HostAccess;

volatile float number = 0;

TEST_P(HostAccess, ReadsDie) {
  const Tensor x = at::ones({1000}, floats());
  EXPECT_EXIT(number = x.const_data_ptr<float>()[5], testing::KilledBySignal(SIGSEGV),
              "the host touched memory of the test device, block of 4000 bytes, last used by "
              "aten::fill_.Scalar on stream 0 of device 0\n");
}

TEST_P(HostAccess, WritesDie) {
  const Tensor x = at::ones({1000}, floats());
  EXPECT_EXIT(x.mutable_data_ptr<float>()[5] = number, testing::KilledBySignal(SIGSEGV), "the host touched");
}

TEST_P(HostAccess, OtherFaultsDieAsBefore) {
  EXPECT_EXIT(std::raise(SIGSEGV), testing::KilledBySignal(SIGSEGV), "^$");
  volatile int* const nowhere = reinterpret_cast<int*>(8);  // UndefinedBehaviorSanitizer sees null first
  EXPECT_EXIT(*nowhere = 1, testing::KilledBySignal(SIGSEGV), "^$");
}

// In a process of its own: at the exit of a fork, libtorch waits for threads of backward that only its parent
// has.
TEST_P(HostAccess, ReportNamesFindingsAndWaits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto reports = [] {
    tutti_device_start("report");
    const Tensor x = at::zeros({4}, floats());
    on(side_stream(), [&] { x.fill_(1); });
    guard().synchronizeDevice(0);
    std::exit(0);
  };
  EXPECT_EXIT(
      reports(), testing::ExitedWithCode(0),
      "test device: aten::fill_.Scalar on stream [0-9]+ of device 0 writes what aten::zero_ on stream 0 "
      "of device 0 writes, without waiting for it\ntest device: 2 kernels, .*, 1 host waits\n"
      "(.*\n)*  host waits: device, 1, stalls 1\n");
}

TEST_P(HostAccess, AddressesAreNamed) {
  const Tensor x = at::ones({1000}, floats(2));
  EXPECT_THAT(where(x.const_data_ptr<float>() + 500),
              HasSubstr("block of 4000 bytes, last used by aten::fill_"));
  const int own = 0;
  EXPECT_EQ(where(&own), "");
}

TEST_P(HostAccess, HostTensorsAmongArgumentsAreErrors) {
  const Tensor x = at::ones({4}, floats());
  EXPECT_THAT(error_of([&] { return x + at::ones({4}); }), HasSubstr("on the same device"));
  EXPECT_THAT(error_of([&] { return at::cat({x, at::ones({4})}); }), HasSubstr("on the same device"));
  EXPECT_THAT(error_of([&] { return at::native_layer_norm(x, {4}, at::ones({4}), {}, 1e-5); }),
              HasSubstr("on the same device"));
  EXPECT_THAT(error_of([&] {
                return at::conv1d(x.view({1, 1, 4}), at::ones({1, 1, 2}));
              }),
              HasSubstr("memory of the host"));
  EXPECT_EQ((x + at::ones({})).sum().item<float>(), 8);
}

TEST_P(HostAccess, TensorsOfAnotherDeviceAreErrors) {
  const Tensor x = at::ones({4}, floats(0)), y = at::ones({4}, floats(1));
  EXPECT_THAT(error_of([&] { return at::native_layer_norm(x, {4}, y, {}, 1e-5); }),
              AllOf(HasSubstr("test:0"), HasSubstr("test:1")));
}

TEST_P(HostAccess, GeneratorsOfTheCpuAreErrors) {
  const at::Generator& generator = at::globalContext().defaultGenerator(at::kCPU);
  EXPECT_THAT(error_of([&] { at::zeros({4}, floats()).bernoulli_(0.5, generator); }), HasSubstr("generator"));
}

TEST_P(HostAccess, HostTensorsMayBeIndices) {
  const Tensor x = at::arange(4, floats());
  EXPECT_EQ(x.index({at::tensor({3, 1})}).sum().item<float>(), 4);
}

struct Adam {
  std::vector<Tensor> values, gradients, means, squares, steps;
  Tensor found_inf;
  explicit Adam(c10::Device of_scalars) {
    for (auto* list : {&values, &gradients, &means, &squares}) list->push_back(at::ones({4}, floats()));
    steps = {at::ones({}, at::TensorOptions(of_scalars))};
    found_inf = at::zeros({}, floats());
  }
  void step(const std::optional<Tensor>& inf) {
    at::_fused_adamw_(values, gradients, means, squares, {}, steps, 1e-2, 0.9, 0.999, 0.01, 1e-8, false,
                      false, {}, inf);
  }
};

TEST_P(HostAccess, HostScalarsInFusedKernelsAreErrors) {
  Adam of_device(device()), of_host(at::kCPU);
  EXPECT_EQ(error_of([&] { of_device.step(of_device.found_inf); }), "");
  EXPECT_THAT(error_of([&] { of_device.step(at::zeros({})); }), HasSubstr("on the same device"));
  EXPECT_THAT(error_of([&] { of_host.step({}); }), HasSubstr("on the same device"));
}

TEST_P(HostAccess, HostScalarsInListsAreErrors) {
  Tensor found = at::zeros({}, floats()), scale = at::ones({}, floats()), host_scale = at::ones({});
  std::vector<Tensor> lists{at::ones({}, floats()), at::ones({})}, good{at::ones({}, floats())};
  const auto unscale = [&](std::vector<Tensor>& list, const Tensor& by) {
    at::_amp_foreach_non_finite_check_and_unscale_(list, found, by);
  };
  EXPECT_EQ(error_of([&] { unscale(good, scale); }), "");
  EXPECT_THAT(error_of([&] { unscale(lists, scale); }), HasSubstr("on the same device"));
  EXPECT_THAT(error_of([&] { unscale(good, host_scale); }), HasSubstr("on the same device"));
}

// Pinned memory, a device tensor of threes, and a stream for copies.
class PinnedMemory : public HostAccess {
 protected:
  void SetUp() override {
    HostAccess::SetUp();
    on(copies, [&] { x = at::full({1000}, 3.0, floats()); });
    host = at::zeros({1000}, at::TensorOptions().pinned_memory(true));
  }
  Tensor x, host;
  c10::Stream copies = side_stream();
};
TUTTI_IN_BOTH_MODES(PinnedMemory);

TEST_P(PinnedMemory, IsPinned) {
  EXPECT_TRUE(host.is_pinned());
  EXPECT_FALSE(at::ones({4}).is_pinned());
  EXPECT_TRUE(at::ones({4}).pin_memory().is_pinned());
}

TEST_P(PinnedMemory, ReadDuringACopyToItDies) {
  on(copies, [&] { host.copy_(x, /*non_blocking=*/true); });
  EXPECT_EXIT(
      number = host.const_data_ptr<float>()[5], testing::KilledBySignal(SIGSEGV),
      "the host touched pinned memory of the test device, block of 4000 bytes, last used by copy to host");
  guard().synchronizeStream(copies);
  EXPECT_EQ(host.const_data_ptr<float>()[5], 3);
}

TEST_P(PinnedMemory, WaitForSomethingElseDoesNotOpenIt) {
  on(copies, [&] { host.copy_(x, /*non_blocking=*/true); });
  guard().synchronizeStream(side_stream());
  EXPECT_EXIT(number = host.const_data_ptr<float>()[5], testing::KilledBySignal(SIGSEGV), "pinned memory");
  guard().synchronizeStream(copies);
}

TEST_P(PinnedMemory, MayBeReadButNotWrittenDuringACopyFromIt) {
  on(copies, [&] { x.copy_(host, /*non_blocking=*/true); });
  EXPECT_EQ(host.const_data_ptr<float>()[5], 0);
  EXPECT_EXIT(host.mutable_data_ptr<float>()[5] = 1, testing::KilledBySignal(SIGSEGV), "pinned memory");
  guard().synchronizeStream(copies);
  host.mutable_data_ptr<float>()[5] = 1;
  EXPECT_EQ(on(copies, [&] { return x[5].item<float>(); }), 0);
}

TEST_P(PinnedMemory, MessageOpensIt) {
  on(copies, [&] { host.copy_(x, /*non_blocking=*/true); });
  const c10::Event copied = event_of(copies);
  event_of(copies).synchronize();
  EXPECT_EQ(host.const_data_ptr<float>()[5], 3);
  EXPECT_TRUE(copied.query());
}

TEST_P(PinnedMemory, IsNotReusedDuringACopy) {
  const void* const before = host.const_data_ptr();
  on(copies, [&] { x.copy_(host, /*non_blocking=*/true); });
  host = Tensor();
  const auto pinned = at::TensorOptions().pinned_memory(true);
  EXPECT_NE(at::empty({1000}, pinned).const_data_ptr(), before);
  guard().synchronizeStream(copies);
  const Tensor other = at::empty({1000}, pinned), same = at::empty({1000}, pinned);
  EXPECT_TRUE(other.const_data_ptr() == before || same.const_data_ptr() == before);
}

TEST_P(PinnedMemory, AsynchronousCopiesNeedNoHostWait) {
  reset_counters();
  on(copies, [&] {
    host.copy_(x, /*non_blocking=*/true);
    x.copy_(host, /*non_blocking=*/true);
  });
  EXPECT_EQ(counters().host_waits, 0);
  on(copies, [&] { x.copy_(at::ones({1000})); });
  EXPECT_EQ(host_waits().at("copy to device"), 1);
}

}  // namespace
}  // namespace tutti::test_device
