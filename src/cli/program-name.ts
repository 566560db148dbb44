import type { ExitCode } from '../base/errors.ts';
import type { Text } from '../base/text/styled.ts';
import type { Output, ProgramName } from './output/services.ts';

/** The environment variable that sets the name, for starting the program through an interpreter or a wrapper. */
const PROGRAM_NAME_VARIABLE = 'KUBELETADM_PROGRAM_NAME';

/**
 * Whether the program was started as `kubeadm`: through a link or a copy of that name, or with KUBELETADM_PROGRAM_NAME=kubeadm; or as
 * the plugin of kubectl, through a link named `kubectl-kubeletadm`.
 * @param paths argv[0] and the path of the script, as the process was started
 */
export function programNameOf(env: Readonly<Record<string, string | undefined>>, paths: readonly (string | undefined)[]): ProgramName {
  const names = [env[PROGRAM_NAME_VARIABLE], ...paths.map((path) => path?.replace(/^.*\//, '').replace(/\.[cm]?js$/, ''))];
  if (names.includes('kubeadm')) return 'kubeadm';
  return names.includes('kubectl-kubeletadm') ? 'kubectl kubeletadm' : 'kubeletadm';
}

/** A command line of this program in a text, with any command but `agent`: `the kubeletadm agent` is no command line. */
const COMMAND_LINE =
  /(?:kubectl )?\bkubeletadm (?=(?:-|(?:init|join|cluster|reset|plan|apply|upgrade|certs|csr|token|config|bundle|explain|validate|undo|edit|status|kubeconfig|node|dynamic|drain|uncordon|maintenance|controller|rollout|ui|fleet|lab|completion|version|help)\b))/g;

/**
 * Replaces the program name in the command lines of a text: `kubeletadm join` becomes `kubeadm join`.
 * @param name the words that start the program
 */
export function renameCommands(text: string, name: string): string {
  return name === 'kubeletadm' ? text : text.replace(COMMAND_LINE, () => `${name} `);
}

/** An output that prints command lines with the name under which the program was started. Documents are kept. */
export function renamingOutput(output: Output, name: string): Output {
  if (name === 'kubeletadm') return output;
  const renamed = (text: Text): Text =>
    typeof text === 'string'
      ? renameCommands(text, name)
      : text.map((part) => (typeof part === 'string' ? renameCommands(part, name) : { ...part, text: renameCommands(part.text, name) }));
  const { prose } = output;
  return {
    ...output,
    stdout: (text) => output.stdout(renamed(text)),
    stderr: (text) => output.stderr(renamed(text)),
    ...(prose === undefined ? {} : { prose: (text) => prose(renamed(text)) }),
  };
}

/** As kubeadm, every failure is 1. Pending changes (`--exit-code`) and interruptions keep their exit codes. */
export function exitCodeAs(name: ProgramName, code: ExitCode): ExitCode {
  return name === 'kubeadm' && code >= 1 && code <= 5 ? 1 : code;
}
