import type { Command } from 'commander';
import type { On, Run } from './command.ts';
import { addFleetHostOptions, defineFleetRun } from './fleet-run-command.ts';
import { addFleetFileOption, addFleetSelectionOptions, addSshOptions, outputOption } from './options.ts';

/** `fleet`: many hosts by one file. */
export function defineFleet(fleet: Command, on: On): void {
  initCommand(fleet, on);
  inventoryCommand(fleet, on);
  validateCommand(fleet, on);
  trustCommand(fleet, on);
  settleCommands(fleet, on);
  defineFleetRun(fleet, on);
  const schema = fleet.command('schema').description('Print the JSON Schema of fleet files, for editors');
  on(schema, async (): Promise<Run> => (await import('./fleet-schema.ts')).runFleetSchema);
  schema.addHelpText(
    'after',
    '\nExamples:\n  # the first line of the file that fleet init writes names it\n  kubeletadm fleet schema > fleet.schema.json',
  );
}

function initCommand(fleet: Command, on: On): void {
  const init = addFleetFileOption(fleet.command('init').description('Write a fleet file to start from; one that is there is not touched'))
    .option('--from-ansible <path>', 'import the hosts of this inventory of Ansible')
    .option('--from-ssh-config [file]', 'import the hosts of this ssh_config (default: ~/.ssh/config)')
    .option(
      '--from-vagrant [file]',
      "the machines of vagrant ssh-config, which is run here; or of a file it was saved to ('-': standard input)",
    )
    .option('--node-ip <subnet>', 'nodes have their IP in this subnet, for hosts with several networks');
  on(init, async (): Promise<Run> => (await import('./fleet-init.ts')).runFleetInit);
  init.addHelpText(
    'after',
    '\nExamples:\n  kubeletadm fleet init\n  kubeletadm fleet init -f edge.yaml --from-ansible inventory/hosts.ini\n  vagrant ssh-config | kubeletadm fleet init --from-vagrant - --node-ip 192.168.56.0/24',
  );
}

function inventoryCommand(fleet: Command, on: On): void {
  const inventory = addFleetSelectionOptions(
    addFleetFileOption(fleet.command('inventory').description('Print what a fleet file comes to, host by host')),
  )
    .option('--host <name>', 'one host, with the line that each of its settings comes from')
    .addOption(outputOption(['table', 'json', 'yaml']));
  on(inventory, async (): Promise<Run> => (await import('./fleet-inventory.ts')).runFleetInventory);
  inventory.addHelpText('after', '\nExamples:\n  kubeletadm fleet inventory -f fleet.yaml\n  kubeletadm fleet inventory --host edge-017');
}

function validateCommand(fleet: Command, on: On): void {
  const validate = addFleetFileOption(
    fleet.command('validate').description('Check a fleet file and each configuration in it; exit code 2 when something is not right'),
  )
    .option('--kubernetes-version <version>', 'the kubelet to judge by (default: kubernetesVersion of the file, else the newest known)')
    .addOption(outputOption(['text', 'json', 'sarif']));
  on(validate, async (): Promise<Run> => (await import('./fleet-validate.ts')).runFleetValidate);
  validate.addHelpText(
    'after',
    '\nExamples:\n  kubeletadm fleet validate -f fleet.yaml\n  kubeletadm fleet validate --kubernetes-version 1.35   # before an upgrade',
  );
}

/** What a run left that was killed, or lost its host, before it came to confirm a change. */
function settleCommands(fleet: Command, on: On): void {
  const options = (command: Command): Command =>
    addSshOptions(
      addFleetSelectionOptions(addFleetFileOption(command.argument('[host...]', 'hosts of the fleet file, or [user@]address[:port]'))),
    );
  const confirm = options(fleet.command('confirm').description('Confirm a pending change before the host rolls it back'));
  on(confirm, async (): Promise<Run> => (await import('./fleet-commit.ts')).runFleetConfirm);
  const revert = options(fleet.command('revert').description('Roll back an unconfirmed change immediately'));
  on(revert, async (): Promise<Run> => (await import('./fleet-commit.ts')).runFleetRevert);
  for (const [command, verb] of [
    [confirm, 'confirm'],
    [revert, 'revert'],
  ] as const)
    command.addHelpText(
      'after',
      `\nExamples:\n  kubeletadm fleet ${verb} worker-7\n  kubeletadm fleet ${verb} --group edge   # all hosts with a pending change`,
    );
}

function trustCommand(fleet: Command, on: On): void {
  const trust = addFleetHostOptions(
    fleet.command('trust').description('Show the host keys of hosts that are not known yet, and record them'),
  )
    .option('-y, --yes', 'record them without asking')
    .option('--dry-run', 'only show them; exit code 6 when some are not known')
    .addOption(outputOption(['text', 'json', 'yaml']));
  on(trust, async (): Promise<Run> => (await import('./fleet-trust.ts')).runFleetTrust);
  trust.addHelpText('after', '\nExamples:\n  kubeletadm fleet trust -f fleet.yaml\n  kubeletadm fleet trust --group edge --dry-run');
}
