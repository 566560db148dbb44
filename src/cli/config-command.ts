import type { Command } from 'commander';
import { addKnowledgeCommands, addMigrateCommand } from './knowledge-commands.ts';
import { addHostOptions, addInitOptions, addNodeOptions, addSshOptions, collect, collectList, outputOption } from './options.ts';
import type { On } from './program.ts';

/** `config` and what is below it. */
export function defineConfig(config: Command, on: On): void {
  const print = config.command('print').description('Print default configurations');
  for (const action of ['init', 'join', 'reset', 'upgrade'] as const) {
    const command = print.command(`${action}-defaults`).description(`Print the defaults of ${action}`);
    if (action === 'init') command.option('--component-configs <kinds>', 'also KubeletConfiguration, KubeProxyConfiguration', collectList);
    on(command, async () => {
      const { runPrintDefaults } = await import('./config-print.ts');
      return (services, _args, options) => runPrintDefaults(services, action, options);
    });
  }
  const validate = config
    .command('validate')
    .description('Check configuration files; exit code 2 when one is not right')
    .argument('[file...]', "files; '-' is standard input");
  validate
    .option('--config <file>', 'a file, as kubeadm names it (repeatable)', collect)
    .option('--allow-deprecated-api', 'no warning about API versions that will go');
  validate
    .option('--kubernetes-version <version>', 'the kubelet to judge KubeletConfigurations by, e.g. 1.34 (default: the newest known)')
    .option('--lenient', 'unknown and duplicate fields of a KubeletConfiguration are warnings');
  addSshOptions(
    validate
      .option('--kubelet <path>', 'ask this kubelet binary as well; it is not started')
      .option(
        '--host <[user@]address[:port]>',
        'ask the kubelet of this host, and judge by its flags and what it runs with (repeatable)',
        collect,
      ),
  );
  on(validate.addOption(outputOption(['text', 'json', 'sarif'])), async () => (await import('./config-validate.ts')).runValidate);
  addMigrateCommand(config, on);
  const render = addInitOptions(addHostOptions(addNodeOptions(config.command('render').description('Print the files a node would get'))));
  render.option('--show-origin', 'say of each field which layer it comes from').addOption(outputOption(['text', 'json', 'yaml']));
  on(render.argument('[path...]', 'only these files'), async () => (await import('./config-render.ts')).runRender);
  addKnowledgeCommands(config, on);
}
