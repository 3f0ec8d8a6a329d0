#include "runtime/nearest_name.h"

#include <gtest/gtest.h>

namespace tutti {
namespace {

using Names = std::vector<std::string>;

TEST(NearestName, EditsAreInsertionsDeletionsSubstitutionsAndExchanges) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2);
  EXPECT_EQ(edit_distance("sdg", "sgd"), 1);
}

TEST(NearestName, IsTheClosestOrNothing) {
  const Names names = {"momentum", "weight_decay", "lr"};
  EXPECT_EQ(nearest_name("momentun", names), "momentum");
  EXPECT_EQ(nearest_name("wieght_decay", names), "weight_decay");
  EXPECT_EQ(nearest_name("dropout", names), "");
  EXPECT_EQ(nearest_name("", names), "");
}

TEST(NearestName, CaseAndSeparatorsDoNotCount) {
  EXPECT_EQ(nearest_name("SGD", {"adam", "sgd"}), "sgd");
  EXPECT_EQ(nearest_name("SpeedMonitor", {"speed_monitors", "speed_monitor"}), "speed_monitor");
  EXPECT_EQ(nearest_name("batch-size", {"batch", "batch_size"}), "batch_size");
  EXPECT_TRUE(same_name("maxDuration", "max_duration"));
  EXPECT_FALSE(same_name("max_durations", "max_duration"));
}

TEST(NearestName, IsABeginningAWordOrTheInitials) {
  EXPECT_EQ(nearest_name("cosine", {"constant", "cosine_annealing_warm_restarts", "cosine_annealing"}),
            "cosine_annealing");
  EXPECT_EQ(nearest_name("resnet50", {"resnet_cifar", "resnet"}), "resnet");
  EXPECT_EQ(nearest_name("bf16", {"fp32", "amp_fp16", "amp_bf16"}), "amp_bf16");
  EXPECT_EQ(nearest_name("learning_rate", {"momentum", "lr"}), "lr");
  EXPECT_EQ(nearest_name("wd", {"momentum", "weight_decay"}), "weight_decay");
}

TEST(NearestName, ANameWithoutLettersIsLikeNone) {
  EXPECT_FALSE(same_name("\u00e9", ""));
  EXPECT_EQ(nearest_name("\u00e9", {"lr"}), "");
}

TEST(NearestName, ASlipOfTheFingerComesBeforeAWord) {
  EXPECT_EQ(nearest_name("max_duratoin", {"max", "max_duration"}), "max_duration");
  EXPECT_TRUE(similar_name("wieght_decay", "weight_decay"));
  EXPECT_FALSE(similar_name("cosine", "cosine_annealing"));
}

}  // namespace
}  // namespace tutti
