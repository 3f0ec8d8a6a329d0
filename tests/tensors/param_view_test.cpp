#include "tensors/param_view.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(ParamView, OfAWholeTensorStartsAtZero) {
  const ParamView view = whole_view("fc.weight", at::zeros({3, 4}));
  EXPECT_EQ(view.name, "fc.weight");
  EXPECT_EQ(view.shape, (Shape{3, 4}));
  EXPECT_EQ(view.region, (TensorRegion{{0, 0}, {3, 4}}));
  EXPECT_EQ(view.placement, row_placement({3, 4}));
  EXPECT_TRUE(view.whole());
}

TEST(ParamView, AScalarIsOnAllRanksAndInSumsOnce) {
  const at::Tensor scalar = at::scalar_tensor(3.0), vector = at::ones({2});
  for (int rank = 0; rank < 3; ++rank) {
    const ParamView of_scalar = shared_view("s", scalar, {3, rank}),
                    of_rows = shared_view("v", vector, {3, rank});
    EXPECT_EQ(of_scalar.tensor.item<double>(), 3.0);
    EXPECT_EQ(of_scalar.part_of_sum(of_scalar.tensor).defined(), rank == 0);
    EXPECT_TRUE(of_rows.part_of_sum(of_rows.tensor).is_same(of_rows.tensor));
  }
  EXPECT_TRUE(whole_view("s", scalar).part_of_sum(scalar).defined());
}

TEST(ParamView, CountsInSumsWithWholeRowsAlone) {
  ParamView view = shared_view("w", at::ones({4, 6}), {2, 1});
  EXPECT_TRUE(view.counts_in_sums());
  view.placement.axes[1].dim = 1;
  EXPECT_DEATH(view.counts_in_sums(), "sums over ranks are of whole rows");
}

}  // namespace
}  // namespace tutti
