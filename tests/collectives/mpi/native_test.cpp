#include <ATen/ops/zeros.h>

#include "tests/collectives/mpi/fixture.h"
#include "tests/collectives/reference_sum.h"

namespace tutti {
namespace {

// Sums of small whole numbers, which are exact in every dtype and order.
at::Tensor whole_numbers(at::ScalarType dtype, int64_t count, int rank) {
  return numbers(at::kDouble, count, rank).clamp(-8, 8).round().to(dtype);
}

class MpiNativeTest : public MpiTest {
 protected:
  at::Tensor expected(at::ScalarType dtype, int64_t count) const {
    std::vector<at::Tensor> all;
    for (int other = 0; other < size(); ++other) all.push_back(whole_numbers(dtype, count, other));
    return reference_sum(all);
  }
};

TEST_F(MpiNativeTest, SumsEveryDtype) {
  const auto group = make_group(Reduction::kNative);
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kInt, at::kLong}) {
    for (const int64_t count : {0, 1, 7, 100003}) {
      const at::Tensor inout = whole_numbers(dtype, count, rank());
      wait(group->all_reduce(inout, "sum"));
      EXPECT_TRUE(inout.equal(expected(dtype, count))) << c10::toString(dtype) << " x " << count;

      const at::Tensor out = at::zeros({count}, dtype);
      wait(group->reduce_scatter(whole_numbers(dtype, count * size(), rank()), out, "scatter"));
      EXPECT_TRUE(out.equal(expected(dtype, count * size()).narrow(0, rank() * count, count)));
    }
  }
}

TEST_F(MpiNativeTest, GathersAndBroadcasts) {
  const auto group = make_group(Reduction::kNative);
  const int64_t count = 10007;
  const at::Tensor out = at::zeros({count * size()}, at::kHalf);
  wait(group->all_gather(numbers(at::kHalf, count, rank()), out, "gather"));
  for (int other = 0; other < size(); ++other) {
    EXPECT_TRUE(same_bits(out.narrow(0, other * count, count), numbers(at::kHalf, count, other)));
    const at::Tensor inout = numbers(at::kHalf, count, rank());
    wait(group->broadcast(inout, other, "copy"));
    EXPECT_TRUE(same_bits(inout, numbers(at::kHalf, count, other)));
  }
}

TEST_F(MpiNativeTest, GathersInPlace) {
  const auto group = make_group(Reduction::kNative);
  const at::Tensor out = at::zeros({10 * size()}, at::kFloat);
  const at::Tensor part = out.narrow(0, rank() * 10, 10);
  part.copy_(numbers(at::kFloat, 10, rank()));
  wait(group->all_gather(part, out, "gather"));
  for (int other = 0; other < size(); ++other) {
    EXPECT_TRUE(same_bits(out.narrow(0, other * 10, 10), numbers(at::kFloat, 10, other)));
  }
}

}  // namespace
}  // namespace tutti
