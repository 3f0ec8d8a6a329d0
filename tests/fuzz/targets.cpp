#include "tests/fuzz/targets.h"

namespace tutti::fuzz {

std::span<const Target> targets() {
  static const Target all[] = {{"recipe", recipe},
                               {"time_text", time_text},
                               {"hub_config", hub_config},
                               {"noise_config", noise_config},
                               {"foundry", foundry},
                               {"fitted_table", fitted_table},
                               {"safetensors", safetensors},
                               {"torch_file", torch_file},
                               {"pickle", pickle},
                               {"weights_index", weights_index},
                               {"hdf5_data", hdf5_data},
                               {"hdf5_weights", hdf5_weights},
                               {"manifest", manifest},
                               {"run_state", run_state},
                               {"journal", journal},
                               {"journal_records", journal_records},
                               {"metrics", metrics},
                               {"result", result},
                               {"log_lines", log_lines},
                               {"event_file", event_file},
                               {"profiler_trace", profiler_trace},
                               {"idx_images", idx_images},
                               {"idx_labels", idx_labels},
                               {"cifar", cifar},
                               {"numpy", numpy},
                               {"csv", csv},
                               {"text_table", text_table},
                               {"texts", texts},
                               {"json_array", json_array},
                               {"chat_template", chat_template},
                               {"tokenizer", tokenizer},
                               {"tokens", tokens},
                               {"megatron", megatron},
                               {"tar", tar},
                               {"mds_index", mds_index},
                               {"mds_shard", mds_shard},
                               {"mds_values", mds_values},
                               {"compressed", compressed},
                               {"jpeg", jpeg},
                               {"png", png},
                               {"webp", webp},
                               {"exported_archive", exported_archive},
                               {"exported_program", exported_program}};
  return all;
}

}  // namespace tutti::fuzz
