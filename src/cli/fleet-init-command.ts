import type { Command } from 'commander';
import { usageError } from '../base/errors.ts';
import { isNodeIp, NODE_IP_FORM } from '../kubelet/flags/node-ip.ts';
import type { CommandOptions, On } from './command.ts';
import type { FleetInitRequest } from './fleet-init.ts';
import type { FleetValidateRequest } from './fleet-validate.ts';
import { addSections, DEFAULT_KUBERNETES_MINOR } from './help-layout.ts';
import { flagChoice, flagText } from './option-values.ts';
import { addFleetFileOption } from './options.ts';
import { outputOption, REPORT_FORMATS } from './output-options.ts';

export function initCommand(fleet: Command, on: On): void {
  const init = addFleetFileOption(
    fleet.command('init').description('Create a fleet file to start from; an existing file is not overwritten'),
    "fleet file to create; '-' for standard output (default: fleet.yaml)",
  )
    .option('--from-ansible <path>', 'Ansible inventory to import hosts from')
    .option('--from-ssh-config [file]', 'ssh_config file to import hosts from (without a value: ~/.ssh/config)')
    .option(
      '--from-vagrant [file]',
      "saved output of vagrant ssh-config to import hosts from, or '-' for standard input (without a value: runs vagrant ssh-config)",
    )
    .option('--from-k0sctl <file>', 'k0sctl.yaml to import hosts from: role, name, address, user, port, key and bastion')
    .option('--node-ip <subnet>', 'subnet of the node IPs, for hosts with several addresses');
  on(init, initRequest, async (...args) => (await import('./fleet-init.ts')).runFleetInit(...args));
  addSections(init, {
    examples: `  kubeletadm fleet init
  kubeletadm fleet init -f edge.yaml --from-ansible inventory/hosts.ini
  kubeletadm fleet init --from-k0sctl k0sctl.yaml
  vagrant ssh-config | kubeletadm fleet init --from-vagrant - --node-ip 192.168.56.0/24`,
  });
}

function initRequest(_: readonly string[], options: CommandOptions): FleetInitRequest {
  const { fromSshConfig, fromVagrant } = options;
  return {
    file: flagText(options, 'file'),
    ansible: flagText(options, 'fromAnsible'),
    sshConfig: fromSshConfig === true ? '~/.ssh/config' : flagText(options, 'fromSshConfig'),
    k0sctl: flagText(options, 'fromK0sctl'),
    vagrant: fromVagrant === true ? null : flagText(options, 'fromVagrant'),
    nodeIP: readNodeIp(options),
  };
}

function readNodeIp(options: CommandOptions): string | undefined {
  const nodeIP = flagText(options, 'nodeIp');
  if (nodeIP !== undefined && !isNodeIp(nodeIP)) throw usageError(`--node-ip: ${nodeIP} is not the IP of a node`, NODE_IP_FORM);
  return nodeIP;
}

export function validateCommand(fleet: Command, on: On): void {
  const validate = addFleetFileOption(
    fleet
      .command('validate')
      .description('Validate a fleet file and each configuration in the file; the exit code is 2 if something is invalid'),
  )
    .option(
      '--kubernetes-version <version>',
      `kubelet version to validate for (default: kubernetesVersion of the fleet file, otherwise ${DEFAULT_KUBERNETES_MINOR})`,
    )
    .addOption(outputOption(REPORT_FORMATS));
  on(
    validate,
    (_, options): FleetValidateRequest => ({
      file: flagText(options, 'file'),
      kubernetesVersion: flagText(options, 'kubernetesVersion'),
      format: flagChoice(options, 'output', REPORT_FORMATS),
    }),
    async (...args) => (await import('./fleet-validate.ts')).runFleetValidate(...args),
  );
  addSections(validate, {
    examples: `  kubeletadm fleet validate -f fleet.yaml
  # before an upgrade
  kubeletadm fleet validate --kubernetes-version 1.35`,
  });
}
