#include "job/named_targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "job/make_job.h"
#include "tests/actors/sleeping_world.h"
#include "tests/data/readers/image_samples.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NamedTargets : public testing::Test {
 protected:
  NamedTargets() {
    for (const char* name : {"images/0.png", "images/1.png", "masks/0.png", "masks/1.png"}) {
      const std::filesystem::path path = folder_.path(std::string("data/") + name);
      std::filesystem::create_directories(path.parent_path());
      write_text(path, encoded_sample("rgb_19x37.png"));
    }
  }
  // Why a job with such data and such a loss is refused; "" = it is not.
  std::string why(const std::string& data, const std::string& loss = "mse") {
    const std::string recipe = "[data.train]\nbatch_size = 2\n" + data + "[model]\nkind = 'mlp'\nloss = '" +
                               loss + "'\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ba'\n";
    try {
      make_job(recipe_of(recipe), {.run_dir = folder_.path("run")});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
  std::string images(const std::string& list = "") const {
    if (!list.empty()) write_text(folder_.path("list.txt"), list);
    return "kind = 'image_folder'\nmean = 0.5\nstd = 0.5\npath = '" + folder_.path("data") + "'\n" +
           (list.empty() ? "" : "list = '" + folder_.path("list.txt") + "'\n");
  }

  Scratch folder_;
};

TEST_F(NamedTargets, ClassFoldersAreNoValues) {
  EXPECT_THAT(
      why(images()),
      AllOf(HasSubstr(
                "model.loss = \"mse\": takes numbers, and the targets of data.train are classes with names"),
            HasSubstr("such as 'masks', of which it would see the place, 1")));
  EXPECT_NE(why(images(), "smooth_l1"), "");
  EXPECT_EQ(why(images(), "cross_entropy"), "");
}

TEST_F(NamedTargets, NamesInAListAreNoValuesAndWholeNumbersAre) {
  EXPECT_THAT(why(images("images/0.png a\nimages/1.png b\n"), "l1"), HasSubstr("such as 'b'"));
  EXPECT_EQ(why(images("images/0.png 3\nimages/1.png 0\n")), "");
}

TEST_F(NamedTargets, TextsOfATableAreNoValues) {
  const auto table = [&](const std::string& rows) {
    write_text(folder_.path("t.csv"), "x,y\n" + rows);
    return "kind = 'csv'\npath = '" + folder_.path("t.csv") + "'\ntarget = 'y'\n";
  };
  EXPECT_THAT(why(table("1.5,low\n2.5,high\n")), HasSubstr("such as 'low'"));
  EXPECT_EQ(why(table("1.5,2.5\n2.5,3.5\n")), "");
}

TEST_F(NamedTargets, MixturesOfNamedClassesAreNoValues) {
  const std::string source =
      "[[data.train.sources]]\nweight = 1.0\nkind = 'image_folder'\npath = '" + folder_.path("data") + "'\n";
  EXPECT_THAT(why("kind = 'mixture'\nmean = 0.5\nstd = 0.5\n" + source + source +
                  "[[data.train.transforms]]\nkind = 'resize'\nsize = [8, 8]\n"),
              HasSubstr("such as 'masks'"));
}

}  // namespace
}  // namespace tutti
