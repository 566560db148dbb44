import type { Command } from 'commander';
import type { On } from './command.ts';
import { addKnowledgeCommands, addMigrateCommand } from './knowledge-commands.ts';
import { addHostOptions, addInitOptions, addNodeOptions, addSshOptions, collect, collectList, outputOption } from './options.ts';

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
  defineImages(config, on);
  addMigrateCommand(config, on);
  const render = addInitOptions(addHostOptions(addNodeOptions(config.command('render').description('Print the files a node would get'))));
  render.option('--show-origin', 'say of each field which layer it comes from').addOption(outputOption(['text', 'json', 'yaml']));
  on(render.argument('[path...]', 'only these files'), async () => (await import('./config-render.ts')).runRender);
  addKnowledgeCommands(config, on);
}

function defineImages(config: Command, on: On): void {
  const list = config
    .command('images')
    .description('Look at the container images of control planes')
    .command('list')
    .description('Print the images a control plane is made of, CoreDNS, kube-proxy, pause and etcd included');
  list
    .option('--config <file>', "kubeadm configuration documents; '-' is standard input")
    .option('--kubernetes-version <version>', 'version of the control plane (default: the newest known)')
    .option('--image-repository <repository>', 'where they come from')
    .option('--feature-gates <name=bool>', "kubeadm's feature gates")
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(list, async () => {
    const { runListImages } = await import('./config-images.ts');
    return (services, _args, options) => runListImages(services, options);
  }).addHelpText('after', () => `\n${IMAGES_EXAMPLES}`);
}

const IMAGES_EXAMPLES = `Examples:
  kubeletadm config images list --kubernetes-version v1.36.2
  kubeletadm config images list --config init.yaml | xargs -n1 crictl pull
  kubeletadm config images list --image-repository registry.example.org/k8s -o json`;
