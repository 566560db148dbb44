import type { Command } from 'commander';
import type { On } from './command.ts';
import { integerBetween } from './options.ts';

/** Each host is an SSH server of this process; a lab of this size was started. */
const MAX_HOSTS = 1000;

/** `lab`. */
export function defineLab(lab: Command, on: On): void {
  lab
    .option('--demo', 'run init on one host and join on the others, configure them while they run, show the results and end')
    .option('--agents', 'install an agent on every host that joins, with the default policy, as `kubeletadm dynamic enable` does')
    .option('--trial <duration>', "the agents' trial", '10s')
    .option('--hosts <count>', 'number of hosts, at least 1', integerBetween(1, MAX_HOSTS), 3)
    .option('--dir <dir>', 'where to keep it (default: a new directory below the temporary one)');
  on(lab, async () => (await import('./lab.ts')).runLab);
}
