#include "data/readers/class_names.h"

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "io/hdf5/hdf5.h"
#include "recipe/toml_reader.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using Names = std::vector<std::string>;

class ClassNamesTest : public testing::Test {
 protected:
  Names names(const std::string& toml) const {
    return class_names(parse_recipe("path = \"" + path_ + "\"\n" + toml, "recipe.toml"));
  }
  void write(const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + file).parent_path());
    std::ofstream(path_ + "/" + file) << text;
  }

  Scratch scratch_;
  std::string path_ = scratch_.path("data");
};

TEST_F(ClassNamesTest, AreInTheFileBesideCifarsSamples) {
  write("cifar-10-batches-bin/batches.meta.txt", "airplane\nautomobile\n\n");
  EXPECT_EQ(names("kind = \"cifar10\""), (Names{"airplane", "automobile"}));
}

TEST_F(ClassNamesTest, AreTheFineOrTheCoarseOnesOfCifar100) {
  write("fine_label_names.txt", "apple\r\nbaby\r\n");
  write("coarse_label_names.txt", "people\n");
  EXPECT_EQ(names("kind = \"cifar100\"\nlabels = \"fine\""), (Names{"apple", "baby"}));
  EXPECT_EQ(names("kind = \"cifar100\"\nlabels = \"coarse\""), Names{"people"});
}

TEST_F(ClassNamesTest, AreAnAttributeOfTheTargetInHdf5) {
  PosixDisk disk;
  const at::Tensor labels = at::zeros({4}, at::kLong);
  write_hdf5(disk, path_, {hdf5_array("train/y", labels, {{"class_names", std::string("ant\nbee")}})});
  const std::string target = "arrays = { target = \"y\" }";
  EXPECT_EQ(names("kind = \"hdf5\"\ngroup = \"train\"\n" + target), (Names{"ant", "bee"}));
  EXPECT_EQ(names("kind = \"hdf5\"\n" + target), Names{}) << "there is no such array";
}

TEST_F(ClassNamesTest, AreNoneWhereTheDataCannotBeRead) {
  EXPECT_EQ(names("kind = \"cifar10\""), Names{});
  EXPECT_EQ(names("kind = \"hdf5\""), Names{});
}

}  // namespace
}  // namespace tutti
