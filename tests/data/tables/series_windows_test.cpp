#include "data/tables/series_windows.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "data/readers/catalog.h"
#include "data/readers/make_dataset.h"
#include "data/split/split_groups.h"
#include "data/tables/table_dataset.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// Two series, whose rows are not in their order: of sensor a at hour t the load is t, of sensor b it is 100 +
// t.
class SeriesTable : public testing::Test {
 protected:
  void SetUp() override {
    std::string rows = "hour,sensor,load,heat\n";
    for (const int hour : {2, 0, 1, 4, 3, 5})
      for (const int series : {1, 0})
        rows += std::to_string(hour) + (series == 0 ? ",a," : ",b,") + std::to_string(100 * series + hour) +
                "," + std::to_string(2 * hour) + ".5\n";
    write_text(scratch_.path("t.csv"), rows);
  }
  Setting section(const std::string& keys) const {
    const Catalog catalog = train_data_catalog();
    const std::string recipe = "[data.train]\nbatch_size = 1\nkind = 'csv'\npath = '" +
                               scratch_.path("t.csv") + "'\ntarget = 'load'\norder = 'hour'\n" + keys;
    return resolve(parse_recipe(recipe, "r.toml"), std::span(&catalog, 1)).at("data").at("train");
  }
  DatasetPtr data(const std::string& keys, const std::optional<std::string>& fitted = std::nullopt) const {
    return make_dataset(section(keys), 0, "", kIgnoredTarget, fitted);
  }
  static Batch all(const DatasetPtr& data) {
    std::vector<int64_t> samples(static_cast<std::size_t>(data->size()));
    std::iota(samples.begin(), samples.end(), 0);
    return data->get(samples, {});
  }

  const std::string kWindows = "window = 3\nseries = 'sensor'\n";
  Scratch scratch_;
};

TEST_F(SeriesTable, WindowsAreOfOneSeriesInItsOrder) {
  const DatasetPtr windows = data(kWindows);
  EXPECT_EQ(windows->size(), 6) << "3 of each series of 6 rows";
  EXPECT_EQ(windows->spec().describe("input"), "float32 [3, 2]");
  const Batch samples = all(windows);
  for (int64_t i = 0; i < 6; ++i) {
    const float load = samples["input"][i][0][0].item<float>();  // the target's past is an input
    const float hour = (samples["input"][i][0][1].item<float>() - 0.5F) / 2;
    EXPECT_EQ(load < 100 ? load : load - 100, hour);
    for (int64_t row = 1; row < 3; ++row) EXPECT_EQ(samples["input"][i][row][0].item<float>(), load + row);
    EXPECT_EQ(samples["target"][i].item<float>(), load + 3);
  }
}

TEST_F(SeriesTable, RowsOfTargetsAreKnown) {
  const DatasetPtr windows = data(kWindows);
  const auto rows = dynamic_cast<const TableDataset&>(*windows).target_rows();
  ASSERT_EQ(std::ssize(rows), 6);
  const std::vector<int> hours = {2, 0, 1, 4, 3, 5};  // two rows of each, of b and a
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int series = rows[i] % 2 == 0 ? 100 : 0;
    EXPECT_EQ(all(windows)["target"][static_cast<int64_t>(i)].item<float>(),
              series + hours[static_cast<std::size_t>(rows[i] / 2)]);
  }
}

TEST_F(SeriesTable, HorizonAndStrideAreSteps) {
  const Batch samples = all(data(kWindows + "horizon = 2\nstride = 2"));
  EXPECT_EQ(samples["target"].size(0), 2) << "of each series the window that begins at hour 0";
  for (int64_t i = 0; i < 2; ++i)
    EXPECT_EQ(samples["target"][i].item<float>(), samples["input"][i][0][0].item<float>() + 4);
}

TEST_F(SeriesTable, TargetsOfTheWindowItselfAreNoInputs) {
  const DatasetPtr windows = data(kWindows + "horizon = 0");
  EXPECT_EQ(windows->spec().describe("input"), "float32 [3, 1]");
  EXPECT_EQ(windows->size(), 8);
}

TEST_F(SeriesTable, TargetsStayWhereInputsAreNormalized) {
  const DatasetPtr windows = data(kWindows + "normalize = true");
  const at::Tensor targets = all(windows)["target"];
  EXPECT_EQ(targets.max().item<float>(), 105);
  EXPECT_LT(all(windows)["input"].abs().max().item<float>(), 3);
  EXPECT_TRUE(at::equal(all(data("", windows->fitted()))["target"], targets))
      << "evaluations have the windows";
}

TEST_F(SeriesTable, TargetsThatAreInputsMayBeNormalized) {
  const at::Tensor plain = all(data(kWindows))["target"];
  const DatasetPtr windows = data(kWindows + "normalize_target = true");
  // All rows have the loads 0 to 5 and 100 to 105.
  const double mean = 52.5, deviation = std::sqrt(2500 + 35.0 / 12);
  EXPECT_TRUE(at::allclose(all(windows)["target"], plain.sub(mean).div(deviation)));
  EXPECT_TRUE(at::equal(all(data("", windows->fitted()))["target"], all(windows)["target"]));
}

TEST_F(SeriesTable, LastRowsOfEachSeriesAreHeldOut) {
  const Setting split(Setting::Table{{"kind", Setting("split", "data.eval.kind", {})},
                                     {"split", Setting(0.5, "data.eval.split", {})},
                                     {"split_seed", Setting(int64_t{0}, "data.eval.split_seed", {})},
                                     {"split_by", Setting(std::monostate(), "data.eval.split_by", {})}},
                      "data.eval", {});
  const std::vector<bool> held_out =
      held_out_rows(section("window = 2\nseries = 'sensor'"), split, kIgnoredTarget);
  const std::vector<bool> expected = {false, false, false, false, false, false,
                                      true,  true,  true,  true,  true,  true};
  EXPECT_EQ(held_out, expected) << "rows of the hours 4, 3 and 5 stand last";
}

TEST_F(SeriesTable, OrdersAreNumbersOrTimesOfOneForm) {
  const auto loads_in_order = [&](const std::vector<std::string>& cells) {
    std::string rows = "hour,sensor,load,heat\n";
    for (std::size_t i = 0; i < cells.size(); ++i) rows += cells[i] + ",a," + std::to_string(i) + ",0\n";
    write_text(scratch_.path("t.csv"), rows);
    const at::Tensor last = all(data("window = 1\ntarget_type = 'number'"))["input"];
    std::string order;
    for (int64_t i = 0; i < last.size(0); ++i) order += std::to_string(last[i][0][0].item<int>());
    return order;
  };
  EXPECT_EQ(loads_in_order({"10", "9", "1e2"}), "10") << "and then the last";
  EXPECT_EQ(loads_in_order({"2024-12-31T07:00", "2023-12-31T08:00", "2024-12-31T08:00"}), "10");
  EXPECT_EQ(loads_in_order({"2024/12/31", "2024/11/30", "2025/01/01"}), "10");
  const auto refused = [&](const std::vector<std::string>& cells) {
    return message_of<UserError>([&] { loads_in_order(cells); });
  };
  EXPECT_THAT(refused({"15/01/2024", "02/02/2024"}), HasSubstr("line 2, column 'hour': '15/01/2024'"));
  EXPECT_THAT(refused({"2024-1-10", "2024-1-9"}), HasSubstr("line 3, column 'hour': '2024-1-9'"));
  EXPECT_THAT(refused({"10", "9", "5a"}), HasSubstr("line 4, column 'hour': '5a'"));
  EXPECT_THAT(refused({"2024-05-31", "7"}), HasSubstr("line 3, column 'hour': '7'"));
  EXPECT_THAT(refused({"2024-10-27 02:00+02:00", "2024-10-27 02:00+01:00"}), HasSubstr("line 3"));
}

TEST_F(SeriesTable, SeriesThatAreTooShortAreSaid) {
  EXPECT_THAT(message_of<UserError>([&] { data("window = 6\nseries = 'sensor'"); }),
              HasSubstr("no series has the 7 rows of a window and its target"));
  EXPECT_THAT(message_of<UserError>([&] { data("window = 2\nseries = 'senso'"); }), HasSubstr("'sensor'"));
  EXPECT_THAT(message_of<UserError>([&] { data("series = 'sensor'"); }), HasSubstr("is for window"));
}

}  // namespace
}  // namespace tutti
