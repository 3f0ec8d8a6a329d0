#include "commands/predictions/output_table.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/error.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using TextCells = std::vector<std::string>;
using WholeCells = std::vector<int64_t>;
using FloatCells = std::vector<float>;

std::vector<std::string> names_of_columns(const WrittenRows& rows) {
  std::vector<std::string> names;
  for (const WrittenColumn& column : rows) names.push_back(column.name);
  return names;
}

template <class Cells>
const Cells& cells_named(const WrittenRows& rows, const std::string& name) {
  for (const WrittenColumn& column : rows)
    if (column.name == name) return std::get<Cells>(column.cells);
  throw std::out_of_range(name);
}

WrittenRows table_for(const at::Tensor& output, OutputMeaning meaning,
                      const OutputTableOptions& options = {}) {
  return output_columns({{"", output, meaning}}, options, 0);
}

TEST(OutputTableTest, ClassesHaveTheirSoftmax) {
  const at::Tensor scores = at::tensor({0.0F, 1.0F, 3.0F, 2.0F, 0.0F, 0.0F}).view({2, 3});
  const WrittenRows named =
      table_for(scores, OutputMeaning::kClasses, {.names = {.classes = {"ant", "bee", "cat"}}, .top_k = 2});
  EXPECT_THAT(names_of_columns(named),
              ElementsAre("class", "score", "class_1", "score_1", "class_2", "score_2"));
  EXPECT_EQ(cells_named<TextCells>(named, "class"), (TextCells{"cat", "ant"}));
  EXPECT_EQ(cells_named<TextCells>(named, "class_2")[0], "bee");
  const double sum = 1 + std::exp(1) + std::exp(3);
  EXPECT_THAT(cells_named<FloatCells>(named, "score")[0],
              FloatNear(static_cast<float>(std::exp(3) / sum), 1e-6F));
  EXPECT_THAT(cells_named<FloatCells>(named, "score_2")[0],
              FloatNear(static_cast<float>(std::exp(1) / sum), 1e-6F));
  const WrittenRows numbered =
      table_for(scores, OutputMeaning::kClasses, {.names = {.classes = {"of two", "names"}}});
  EXPECT_EQ(cells_named<WholeCells>(numbered, "class"), (WholeCells{2, 0}));
  EXPECT_THAT(names_of_columns(numbered), ElementsAre("class", "score"));
}

TEST(OutputTableTest, ASingleScoreIsOfTheSecondClass) {
  const WrittenRows rows = table_for(at::tensor({-1.0F, 2.0F}).view({2, 1}), OutputMeaning::kClasses);
  EXPECT_EQ(cells_named<WholeCells>(rows, "class"), (WholeCells{0, 1}));
  EXPECT_THAT(cells_named<FloatCells>(rows, "score")[1],
              FloatNear(static_cast<float>(1 / (1 + std::exp(-2))), 1e-6F));
}

TEST(OutputTableTest, LabelsAreThoseOverAHalf) {
  const at::Tensor scores = at::tensor({1.0F, -1.0F, 2.0F, -1.0F, -2.0F, -3.0F}).view({2, 3});
  const WrittenRows rows = table_for(scores, OutputMeaning::kLabels, {.names = {.classes = {"a", "b", "c"}}});
  EXPECT_THAT(names_of_columns(rows), ElementsAre("labels", "score_a", "score_b", "score_c"));
  EXPECT_EQ(cells_named<TextCells>(rows, "labels"), (TextCells{"a;c", ""}));
  EXPECT_THAT(cells_named<FloatCells>(rows, "score_a")[0],
              FloatNear(static_cast<float>(1 / (1 + std::exp(-1))), 1e-6F));
}

TEST(OutputTableTest, ValuesAreUnchanged) {
  const at::Tensor values = at::tensor({0.1F, 2.0F, 3.0F, 4.0F}).view({2, 2});
  const WrittenRows rows =
      table_for(values, OutputMeaning::kValues, {.names = {.values = {"width", "height"}}});
  EXPECT_THAT(names_of_columns(rows), ElementsAre("width", "height"));
  EXPECT_EQ(cells_named<FloatCells>(rows, "height"), (FloatCells{2, 4}));
  const auto scaled =
      table_for(values, OutputMeaning::kValues,
                {.names = {.values = {"width", "height"}, .mean = {100, 0}, .deviation = {10, 1}}});
  EXPECT_EQ(std::get<std::vector<float>>(scaled[0].cells)[0], values[0][0].item<float>() * 10 + 100);
  EXPECT_EQ(std::get<std::vector<float>>(scaled[1].cells)[0], values[0][1].item<float>());
  EXPECT_THAT(names_of_columns(table_for(values, OutputMeaning::kValues)),
              ElementsAre("output_0", "output_1"));
  EXPECT_THAT(names_of_columns(table_for(values.select(1, 0), OutputMeaning::kValues)),
              ElementsAre("output"));
  const WrittenRows two =
      output_columns({{"count", values.select(1, 0).to(at::kLong), OutputMeaning::kValues},
                      {"kind", values, OutputMeaning::kClasses}},
                     {}, 0);
  EXPECT_THAT(names_of_columns(two), ElementsAre("count", "kind_class", "kind_score"));
  EXPECT_EQ(cells_named<WholeCells>(two, "count"), (WholeCells{0, 3}));
}

TEST(OutputTableTest, ClassesOfPixelsAreMasks) {
  at::Tensor scores = at::zeros({2, 3, 4, 5});
  scores[1][2].fill_(1);
  std::vector<at::Tensor> masks;
  const OutputTableOptions options{
      .write_mask = [&](const at::Tensor& mask, const std::string&, int64_t row) {
        masks.push_back(mask.clone());
        return "masks/" + std::to_string(row);
      }};
  const WrittenRows rows = output_columns({{"", scores, OutputMeaning::kClasses}}, options, 7);
  EXPECT_EQ(cells_named<TextCells>(rows, "mask"), (TextCells{"masks/7", "masks/8"}));
  ASSERT_EQ(masks.size(), 2U);
  EXPECT_TRUE(masks[1].equal(at::full({4, 5}, 2, at::kByte)));
}

TEST(OutputTableTest, OutputsWithoutAColumnAreRefused) {
  for (const auto& [shape, meaning] : {std::pair(Shape{1, 7, 9}, OutputMeaning::kClasses),
                                       {Shape{1, 2, 4, 4}, OutputMeaning::kLabels},
                                       {Shape{1, 3, 300, 300}, OutputMeaning::kValues}}) {
    EXPECT_THAT([&] { table_for(at::zeros(shape), meaning); },
                testing::ThrowsMessage<UserError>(HasSubstr("--out FILE.h5")));
  }
}

}  // namespace
}  // namespace tutti
