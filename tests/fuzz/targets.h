#pragma once

#include <span>
#include <string>

// Readers of files, each a function of a file's bytes. A function returns if the reader reads the bytes, or
// refuses them with an error that the program knows; any other exception leaves it, and is a defect.
namespace tutti::fuzz {

void recipe(const std::string& bytes);
void time_text(const std::string& bytes);
void hub_config(const std::string& bytes);
void noise_config(const std::string& bytes);
void foundry(const std::string& bytes);
void yaml(const std::string& bytes);
void fitted_table(const std::string& bytes);
void safetensors(const std::string& bytes);
void torch_file(const std::string& bytes);
void pickle(const std::string& bytes);
void weights_index(const std::string& bytes);
void hdf5_data(const std::string& bytes);
void hdf5_weights(const std::string& bytes);
void manifest(const std::string& bytes);
void run_state(const std::string& bytes);
void journal(const std::string& bytes);
void journal_records(const std::string& bytes);
void metrics(const std::string& bytes);
void result(const std::string& bytes);
void log_lines(const std::string& bytes);
void event_file(const std::string& bytes);
void profiler_trace(const std::string& bytes);
void idx_images(const std::string& bytes);
void idx_labels(const std::string& bytes);
void cifar(const std::string& bytes);
void numpy(const std::string& bytes);
void csv(const std::string& bytes);
void text_table(const std::string& bytes);
void texts(const std::string& bytes);
void json_array(const std::string& bytes);
void tasks(const std::string& bytes);
void chat_template(const std::string& bytes);  // and behind the first zero byte a chat
void tokenizer(const std::string& bytes);
void tokens(const std::string& bytes);
void megatron(const std::string& bytes);
void tar(const std::string& bytes);  // with checksums made right
void mds_index(const std::string& bytes);
void mds_shard(const std::string& bytes);
void mds_values(const std::string& bytes);
void compressed(const std::string& bytes);
void jpeg(const std::string& bytes);
void png(const std::string& bytes);
void webp(const std::string& bytes);
void bmp(const std::string& bytes);
void gif(const std::string& bytes);
void tiff(const std::string& bytes);
void pnm(const std::string& bytes);
void exported_archive(const std::string& bytes);
void exported_program(const std::string& bytes);
void program_operators(const std::string& bytes);  // what a program calls
void script(const std::string& bytes);
void script_objects(const std::string& bytes);

struct Target {
  const char* name;
  void (*read)(const std::string& bytes);
};
std::span<const Target> targets();

}  // namespace tutti::fuzz
