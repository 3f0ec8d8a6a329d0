// Kernels of tutti's own (tensors/kernels/operator.h) on the test device: the CPU's bits, and no needless
// wait.

#include <bit>
#include <cmath>
#include <limits>

#include "tensors/digests.h"
#include "tensors/draws.h"
#include "tensors/late_numbers.h"
#include "tensors/norms.h"
#include "tensors/process_state.h"
#include "tests/device/streams_for_tests.h"

namespace tutti::test_device {
namespace {

class Kernels : public DeviceTest {};
TUTTI_IN_BOTH_MODES(Kernels);

std::vector<at::Tensor> tensors_of(at::ScalarType dtype) {
  at::manual_seed(5);
  std::vector<at::Tensor> tensors{at::Tensor(), at::empty({0, 5}, dtype)};
  for (const Shape& shape : std::vector<Shape>{
           {}, {1}, {33}, {4097}, {1003, 3}, {1003, 16}, {70, 27}, {3, 5000}, {16, 7, 3, 3}, {1 << 10, 1100}})
    tensors.push_back((at::randn(shape) * at::exp(at::randn(shape) * 2)).to(dtype));
  tensors.push_back(at::randn({17, 8, 3, 3}).to(dtype).contiguous(at::MemoryFormat::ChannelsLast));
  tensors.push_back(at::randn({17, 2, 2, 2}).to(dtype).contiguous(at::MemoryFormat::ChannelsLast));
  tensors.push_back(at::randn({100, 40}).to(dtype).t());
  return tensors;
}

std::vector<at::Tensor> on_device(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  for (const at::Tensor& one : tensors) copies.push_back(one.defined() ? one.to(device()) : at::Tensor());
  return copies;
}

std::vector<uint64_t> bits_of(const std::vector<double>& numbers) {
  std::vector<uint64_t> bits;
  for (const double number : numbers) bits.push_back(std::bit_cast<uint64_t>(number));
  return bits;
}

TEST_P(Kernels, NormsAreTheCpusAndWaitOnce) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const std::vector<at::Tensor> here = tensors_of(dtype), there = on_device(here);
    reset_counters();
    const std::vector<double> found = norms(there, {});
    EXPECT_EQ(counters().host_waits, 1);
    EXPECT_EQ(counters().copies_to_host, 1);
    EXPECT_EQ(bits_of(found), bits_of(norms(here, {})));
    reset_counters();
    const double total = total_norm(there, {});
    EXPECT_EQ(counters().host_waits, 1);
    EXPECT_EQ(bits_of({total}), bits_of({total_norm(here, {})}));
  }
}

TEST_P(Kernels, LateNumbersAreThoseOfTheirAdding) {
  for (const auto dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor x = at::ones({3}, floats().dtype(dtype));
    LateNumbers numbers;
    double sum = 0;
    numbers.add(x, [&sum](std::span<const double> all) { sum = all[0] + all[2]; });
    x.fill_(5);
    numbers.read();
    EXPECT_EQ(sum, 2);
  }
}

TEST_P(Kernels, SquaresOfRowsAreTheCpusAndStayThere) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    for (const at::Tensor& here : tensors_of(dtype)) {
      if (!here.defined()) continue;
      const at::Tensor there = here.to(device());
      reset_counters();
      const at::Tensor squares = row_squares(there);
      EXPECT_EQ(counters().host_waits, 0);
      EXPECT_TRUE(squares.cpu().equal(row_squares(here)));
    }
  }
}

TEST_P(Kernels, NormsOfInfinitiesAndNansAreSo) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const Shape& shape : {Shape{40}, Shape{4, 40}}) {
    at::Tensor numbers = at::ones(shape);
    numbers.view(-1)[7] = -kInfinity;
    EXPECT_EQ(total_norm(on_device({numbers}), {}), kInfinity);
    numbers.view(-1)[9] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(std::isnan(total_norm(on_device({numbers}), {})));
  }
}

TEST_P(Kernels, BernoullisAreTheCpusWithoutACopy) {
  const RandomKey key = make_draws(3, {"Dropout 0", 5})->key_of_batch();
  for (const double probability : {0.0, 0.3, 1.0}) {
    for (const Shape& shape :
         std::vector<Shape>{{0, 3}, {1}, {7}, {3, 7}, {2, 4097}, {1003, 3}, {4, 3, 20, 8}}) {
      reset_counters();
      const at::Tensor drawn = bernoullis(key, 11, shape, probability, device());
      EXPECT_EQ(counters().copies_to_device, 0);
      EXPECT_EQ(counters().host_waits, 0);
      EXPECT_TRUE(drawn.cpu().equal(bernoullis(key, 11, shape, probability, at::kCPU))) << shape.back();
    }
  }
}

TEST_P(Kernels, CopiesToTheDeviceLetTheHostContinue) {
  at::Tensor here = at::arange(40, at::kFloat).view({4, 10}).t();
  reset_counters();
  const at::Tensor there = copy_to_device(here, device());
  EXPECT_EQ(counters().host_waits, 0);
  EXPECT_TRUE(copy_to_device(there, device()).is_same(there));
  here.zero_();
  EXPECT_TRUE(there.cpu().equal(at::arange(40, at::kFloat).view({4, 10}).t()));
}

class KeepsDigests final : public Recorder {
 public:
  void record(const TraceEvent&) override {}
  std::vector<TraceEvent> last(int) const override { return {}; }
  void digest(const Digest& digest) override {
    values.push_back({digest.value, {digest.parts.begin(), digest.parts.end()}});
  }

  std::vector<std::pair<uint64_t, std::vector<uint16_t>>> values;
};

// Of two windows and a half, with gaps between the parts.
TEST_P(Kernels, DigestsAreTheCpusAndTheirWindowsAreWaitedForLater) {
  constexpr int64_t kBytes = 5 * WindowedDigest::kWindow / 2;
  const std::vector<DigestPart> parts{{"a", 64, kBytes / 2}, {"b", kBytes / 2 + 128, kBytes - 64}};
  KeepsDigests here, there;
  WindowedDigest on_cpu("x", parts, here), on_device("x", parts, there);
  at::Tensor flat = at::arange(kBytes / 4, at::kInt);
  at::Tensor of_device = flat.to(device());
  for (int64_t step = 0; step < 4; ++step) {
    on_cpu.record(step, flat);
    reset_counters();
    on_device.record(step, of_device);
    EXPECT_EQ(counters().host_waits, 0);
    EXPECT_EQ(there.values.size(), step);
    of_device.add_(1);  // what the copy must not see
    on_device.finish();
    on_device.finish();
    EXPECT_EQ(counters().host_waits, 1);
    ASSERT_EQ(there.values, here.values);
    flat.add_(1);
  }
}

// Of parts that begin at any byte.
TEST_P(Kernels, DigestsOfOddPartsAreTheCpus) {
  at::manual_seed(2);
  const at::Tensor flat = at::randint(256, {20001}, at::kByte);
  const std::vector<DigestPart> parts{{"a", 1, 2}, {"b", 3, 4100}, {"c", 4100, 4100}, {"d", 4101, 20001}};
  KeepsDigests here, there;
  WindowedDigest on_cpu("x", parts, here), on_device("x", parts, there);
  on_cpu.record(0, flat);
  on_device.record(0, flat.to(device()));
  on_device.finish();
  EXPECT_EQ(there.values, here.values);
}

TEST_P(Kernels, DigestsOfTensorsAreTheCpusAndWaitOnce) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    std::vector<at::Tensor> tensors = tensors_of(dtype);
    tensors.erase(tensors.begin());  // undefined
    tensors.push_back(tensors.back().narrow(1, 1, 7));
    const auto there = on_device(tensors);
    TensorsDigest::Named named, of_device;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      named.emplace_back(std::to_string(i), tensors[i]);
      of_device.emplace_back(std::to_string(i), i == 1 ? tensors[i] : there[i]);  // one is on the host
    }
    KeepsDigests cpu, device;
    TensorsDigest("x", cpu, TensorsDigest::kWhole).record(0, named);
    reset_counters();
    TensorsDigest("x", device, TensorsDigest::kWhole).record(0, of_device);
    EXPECT_EQ(counters().host_waits, 1);
    EXPECT_EQ(counters().copies_to_host, 1);
    EXPECT_EQ(device.values, cpu.values);
  }
}

TEST_P(Kernels, RanksOfADeviceHaveGeneratorsOfTheirOwn) {
  const auto draw = [] { return at::rand({3}, floats()).cpu(); };
  ProcessStateSwitch ranks(2);
  for (const int rank : {0, 1}) ranks.set_device(rank, device());
  ranks.enter(0);
  seed_default_generators(7, device());
  const DefaultGenerators before(device());
  const at::Tensor first = draw(), second = draw();
  {
    const DefaultGeneratorScope again(before, device());
    EXPECT_TRUE(draw().equal(first));
  }
  seed_default_generators(7, device());
  EXPECT_TRUE(draw().equal(first));
  ranks.enter(1);
  seed_default_generators(8, device());
  EXPECT_FALSE(draw().equal(first));
  ranks.enter(0);
  EXPECT_TRUE(draw().equal(second));
}

}  // namespace
}  // namespace tutti::test_device
