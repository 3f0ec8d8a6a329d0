#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "io/json/json_setting.h"
#include "models/diffusion/noise_schedule.h"
#include "models/hub/config.h"
#include "models/hub/diffusers.h"
#include "models/zoo/catalog.h"
#include "models/zoo/diffusion_unet.h"
#include "recipe/resolve.h"
#include "tests/golden/expect_near.h"
#include "tests/golden/golden_file.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

Setting json_in(const std::string& text) {
  const Scratch folder;
  std::ofstream(folder.path("config.json")) << text;
  return read_json_object(folder.path("config.json"));
}

// The options of a [model] section with these keys.
DiffusionUnetOptions options_of(Setting::Table keys) {
  return DiffusionUnetOptions::kind().read(
      resolve_section(model_catalog(), Setting(std::move(keys), "model", {}), {}));
}

std::string title_of(const std::string& file, const std::string& name) {
  return GoldenCase(own_path(file), name).text("title");
}

class GoldenDiffusionUnet : public testing::TestWithParam<std::string> {
 protected:
  GoldenDiffusionUnet()
      : case_(own_path("diffusion_unets.h5"), GetParam()),
        model_(
            options_of(zoo_section(json_in(case_.text("config")), Setting(Setting::Table(), "model", {})))) {
    materialise(model_, 1);
    const at::NoGradGuard no_grad;
    for (const NamedParameter& named : parameters(model_))
      named.parameter->tensor.copy_(case_.tensor("in/weights/" + named.name));
  }

  GoldenCase case_;
  DiffusionUnet model_;
};

TEST_P(GoldenDiffusionUnet, HasDiffusersNames) {
  std::vector<std::string> names;
  for (const NamedParameter& named : parameters(model_)) names.push_back(named.name);
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(case_.names("in/weights")));
  EXPECT_TRUE(buffers(model_).empty());
}

TEST_P(GoldenDiffusionUnet, GivesDiffusersOutputsAndGradients) {
  const at::Tensor outputs = model_.predict(case_.tensor("in/images"), case_.tensor("in/timesteps"));
  expect_near(outputs.detach(), case_.tensor("out/outputs"), kOfOutputs, "outputs");
  const Outputs both = TensorTree::Children{{"prediction", outputs}, {"target", case_.tensor("in/target")}};
  model_.loss(both, {}).backward();
  expect_gradients_near(model_, case_);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenDiffusionUnet,
                         testing::ValuesIn(golden_cases(own_path("diffusion_unets.h5"))),
                         [](const auto& info) { return title_of("diffusion_unets.h5", info.param); });

class GoldenNoise : public testing::TestWithParam<std::string> {
 protected:
  GoldenNoise() : case_(own_path("diffusion_noise.h5"), GetParam()) {}

  // Of the case's "ddpm" or "ddim".
  NoiseSchedule schedule_of(const std::string& scheduler) const {
    Setting::Table keys{{"kind", Setting(std::string("diffusion_unet"), "model.kind", {})},
                        {"sample_size", Setting(int64_t{8}, "model.sample_size", {})}};
    for (auto& one : noise_section(json_in(case_.text(scheduler)))) keys.push_back(std::move(one));
    return NoiseSchedule(options_of(std::move(keys)));
  }

  at::Tensor in(const std::string& name) const { return case_.tensor("in/" + name); }

  // The steps of a sampler, each from the same images with the same output of a model.
  template <class Sample>
  void expect_steps(const std::string& scheduler, const NoiseSchedule& schedule, const Sample& sample) const {
    std::vector<int64_t> timesteps;
    std::vector<at::Tensor> images;
    for (const auto& step : schedule.steps(case_.tensor("out/" + scheduler + "/timesteps").numel())) {
      timesteps.push_back(step.t);
      images.push_back(sample(step, in("output"), case_.tensor("out/noisy")));
    }
    EXPECT_TRUE(at::equal(at::tensor(timesteps), case_.tensor("out/" + scheduler + "/timesteps")));
    case_.expect_close(at::stack(images), "out/" + scheduler + "/steps");
  }

  GoldenCase case_;
};

TEST_P(GoldenNoise, IsAddedAsDiffusersAddsIt) {
  const NoiseSchedule schedule = schedule_of("ddpm");
  case_.expect_close(schedule.alphas_cumprod(), "out/alphas");
  case_.expect_close(schedule.add_noise(in("images"), in("noise"), in("timesteps")), "out/noisy");
  const at::Tensor target = schedule.target(in("images"), in("noise"), in("timesteps"));
  const std::string title = case_.text("title");
  if (title.find("v_prediction") != std::string::npos) case_.expect_close(target, "out/velocity");
  if (title.find("epsilon") != std::string::npos) EXPECT_TRUE(at::equal(target, in("noise")));
  if (title.find("sample") != std::string::npos) EXPECT_TRUE(at::equal(target, in("images")));
}

TEST_P(GoldenNoise, IsTakenAwayAsDiffusersSamplersDo) {
  const NoiseSchedule ddpm = schedule_of("ddpm"), ddim = schedule_of("ddim");
  expect_steps("ddpm", ddpm, [&](const auto& step, const at::Tensor& output, const at::Tensor& images) {
    return ddpm.ddpm_step(step, output, images, in("step_noise"));
  });
  expect_steps("ddim", ddim, [&](const auto& step, const at::Tensor& output, const at::Tensor& images) {
    return ddim.ddim_step(step, output, images);
  });
}

INSTANTIATE_TEST_SUITE_P(All, GoldenNoise, testing::ValuesIn(golden_cases(own_path("diffusion_noise.h5"))),
                         [](const auto& info) { return title_of("diffusion_noise.h5", info.param); });

}  // namespace
}  // namespace tutti
