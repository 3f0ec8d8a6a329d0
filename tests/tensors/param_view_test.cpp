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

}  // namespace
}  // namespace tutti
