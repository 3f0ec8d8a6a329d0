#include "tensors/param_view.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(ParamView, OfAWholeTensorStartsAtZero) {
  const ParamView view = whole_view("fc.weight", at::zeros({3, 4}));
  EXPECT_EQ(view.name, "fc.weight");
  EXPECT_EQ(view.shape, (Shape{3, 4}));
  EXPECT_EQ(view.offset, (Shape{0, 0}));
  EXPECT_TRUE(view.whole());
}

TEST(ParamView, PiecesCoverEveryRowOnce) {
  for (const int64_t rows : {0, 1, 5, 8, 9, 1000})
    for (const int pieces : {1, 2, 3, 4, 8}) {
      int64_t next = 0;
      for (int i = 0; i < pieces; ++i) {
        const Rows piece = rows_of_piece(rows, pieces, i);
        EXPECT_EQ(piece.begin, next);
        EXPECT_GE(piece.count(), 0);
        next = piece.end;
      }
      EXPECT_EQ(next, rows);
    }
}

TEST(ParamView, FirstPiecesAreFullAndTheLastOnesShortOrEmpty) {
  EXPECT_EQ(rows_of_piece(5, 4, 0).count(), 2);
  EXPECT_EQ(rows_of_piece(5, 4, 1).count(), 2);
  EXPECT_EQ(rows_of_piece(5, 4, 2).count(), 1);
  EXPECT_EQ(rows_of_piece(5, 4, 3).count(), 0);
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

}  // namespace
}  // namespace tutti
