#include "io/weights/model_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Caches as torch 2.11 and huggingface_hub 1.0 lay them out.
class ModelCacheNames : public testing::Test {
 protected:
  ModelCacheNames() {
    setenv("TORCH_HOME", scratch_.path("torch").c_str(), 1);
    setenv("HF_HOME", scratch_.path("hf").c_str(), 1);
    std::filesystem::create_directories(scratch_.path("here"));
    std::filesystem::create_directories(scratch_.path("torch/hub/checkpoints"));
  }
  ~ModelCacheNames() override {
    unsetenv("TORCH_HOME");
    unsetenv("HF_HOME");
  }

  std::string torch_file(const std::string& name) {
    const std::string path = scratch_.path("torch/hub/checkpoints/" + name);
    write_text(path, "");
    return path;
  }

  std::string revision(const std::string& repository, const std::string& hash) {
    const std::string path = scratch_.path("hf/hub/" + repository + "/snapshots/" + hash);
    std::filesystem::create_directories(path);
    return path;
  }

  void set_main(const std::string& repository, const std::string& hash) {
    std::filesystem::create_directories(scratch_.path("hf/hub/" + repository + "/refs"));
    write_text(scratch_.path("hf/hub/" + repository + "/refs/main"), hash);
  }

  std::string path_of(const std::string& name, ModelCache cache = ModelCache::kAny) {
    return cached_model(Setting(name, "model.weights", {"r.toml", 3}), scratch_.path("here"), cache).text();
  }

  std::string refusal_of(const std::string& name, ModelCache cache = ModelCache::kAny) {
    return message_of<UserError>([&] { path_of(name, cache); });
  }

  Scratch scratch_;
};

TEST_F(ModelCacheNames, FileOfTorchHubIsNamedWithoutItsHash) {
  const std::string file = torch_file("resnet18-f37072fd.pth");
  torch_file("resnet50-0676ba61.pth");
  EXPECT_EQ(path_of("resnet18"), file);
  EXPECT_EQ(path_of("resnet18-f37072fd"), file);
}

TEST_F(ModelCacheNames, FolderOfHuggingFaceIsTheRevisionThatMainNames) {
  const std::string bert = revision("models--bert-base-uncased", "0a1b");
  revision("models--bert-base-uncased", "ffff");
  set_main("models--bert-base-uncased", "0a1b\n");
  const std::string vit = revision("models--google--vit-base", "12");
  EXPECT_EQ(path_of("bert-base-uncased", ModelCache::kHuggingFace), bert);
  EXPECT_EQ(path_of("google/vit-base"), vit);
}

TEST_F(ModelCacheNames, RevisionIsNoPathOutOfTheCache) {
  revision("models--a", "11");
  revision("models--a", "22");
  set_main("models--a", "../../../../torch");
  EXPECT_THAT(refusal_of("a"), HasSubstr("no model of this name"));
}

TEST_F(ModelCacheNames, TextThatIsAPathStays) {
  torch_file("resnet18-f37072fd.pth");
  write_text(scratch_.path("here/resnet18"), "");
  for (const char* path : {"resnet18", "resnet18.pth", "./resnet50", "/resnet50", "../resnet50", "a/b/c"})
    EXPECT_EQ(path_of(path), path);
}

TEST_F(ModelCacheNames, NameOfSeveralModelsIsRefusedWithTheirPaths) {
  const std::string first = torch_file("resnet50-0676ba61.pth"), second = torch_file("resnet50-11ad3fa6.pth");
  EXPECT_THAT(refusal_of("resnet50"), AllOf(HasSubstr("r.toml:3"), HasSubstr(first), HasSubstr(second)));
}

TEST_F(ModelCacheNames, UnknownNameIsRefusedWithTheNearestAndTheWayToFetchIt) {
  torch_file("resnet18-f37072fd.pth");
  EXPECT_THAT(refusal_of("resnet81"),
              AllOf(HasSubstr("did you mean \"resnet18\"?"), HasSubstr("hf download resnet81"),
                    HasSubstr(scratch_.path("torch/hub/checkpoints"))));
}

TEST_F(ModelCacheNames, NameOfTorchvisionsWeightsIsNoModel) {
  EXPECT_THAT(refusal_of("IMAGENET1K_V1"), HasSubstr("weights = \"resnet18\""));
}

TEST_F(ModelCacheNames, TokenizerIsNoFileOfTorchHub) {
  torch_file("gpt2-f37072fd.pth");
  EXPECT_THAT(refusal_of("gpt2", ModelCache::kHuggingFace), HasSubstr("no model of this name"));
}

}  // namespace
}  // namespace tutti
