import { AppError } from '../../base/errors.ts';
import { observe } from '../../host/access/observe.ts';
import { defineFact } from '../../host/facts/fact.ts';
import type { LargeFile } from '../../host/operation/large-file.ts';
import type { PhaseContext } from '../../host/phase.ts';
import { isSupportedNodeJs, OLDEST_NODEJS_VERSION, programKind, programPath } from '../../kubelet/node-agent/agent-program.ts';
import type { AgentProgramInput } from '../phases/agent-program.ts';

export interface InstalledProgram {
  /** Null: no program to install. */
  readonly file: LargeFile | null;
  readonly directory: string;
  /** Path of Node.js on the host; null: searched on the host. */
  readonly node: string | null;
}

/**
 * The program to install on a host, and the command that starts it there.
 * @param options.subject the program in messages: `the agent`
 * @param refuse receives the reasons why it cannot be installed
 * @returns null: refused
 * @throws AppError AGENT_PROGRAM_MISSING (exit code 2)
 */
export async function prepareProgram(
  { host, signal }: PhaseContext,
  {
    program: { file, directory, node },
    machine,
    subject,
  }: { readonly program: InstalledProgram; readonly machine: string | null; readonly subject: string },
  refuse: (code: string, message: string, hint: string) => void,
): Promise<AgentProgramInput | null> {
  if (file === null)
    throw new AppError(
      {
        code: 'AGENT_PROGRAM_MISSING',
        message: 'kubeletadm runs from its sources and therefore has no agent program to install',
        hint: 'Run npm run build, then pass --program dist/kubeletadm-agent.mjs',
      },
      { exitCode: 2 },
    );
  const kind = programKind(file);
  const path = programPath(directory, file, kind.kind);
  if (kind.kind === 'other') {
    refuse(
      'AGENT_PROGRAM_UNKNOWN',
      'the file of --program is neither kubeletadm-agent.mjs nor an executable',
      'Pass kubeletadm-agent.mjs, or an executable of kubeletadm such as kubeletadm-linux-x64, with --program',
    );
    return null;
  }
  if (kind.kind === 'executable') {
    if (machine !== null && machine !== kind.machine)
      refuse(
        'AGENT_PROGRAM_OTHER_MACHINE',
        `the executable of --program is for ${kind.machine}, but the host is ${machine}`,
        'Pass an executable for that architecture, or kubeletadm-agent.mjs, with --program',
      );
    return { file, path, command: [path] };
  }
  const found = await observe(host, nodeProgram(node), signal);
  const desired = `Node.js ${OLDEST_NODEJS_VERSION.join('.')} or later`;
  const hint = `Install Node.js on the host, or pass the path of an installed Node.js with --node-js. To run ${subject} without Node.js, pass an executable of kubeletadm (kubeletadm-linux-x64 or kubeletadm-linux-arm64) with --program`;
  if (found === null) refuse('NODE_JS_MISSING', `${subject} needs ${desired}, but ${node ?? 'node'} does not exist on the host`, hint);
  else if (!isSupportedNodeJs(found.version))
    refuse('NODE_JS_TOO_OLD', `${subject} needs ${desired}, but ${found.path} is ${found.version}`, hint);
  return { file, path, command: [found?.path ?? 'node', path] };
}

/** Node.js on the host, by its absolute path: systemd units have only a minimal PATH. */
function nodeProgram(named: string | null) {
  const script =
    'for n in "$@"; do p=$(command -v "$n") && v=$("$p" --version 2>/dev/null </dev/null) && { printf "%s %s\\n" "$p" "$v"; exit 0; }; done; exit 1';
  const names = named === null ? ['node', '/usr/local/bin/node', '/usr/bin/node'] : [named];
  return defineFact({ found: { kind: 'command', argv: ['sh', '-c', script, 'sh', ...names] } }, ({ found }) => {
    const [, path, version] = /^(\/.*) (v\S+)$/m.exec(found.exitCode === 0 ? found.stdout : '') ?? [];
    return path === undefined || version === undefined ? null : { path, version };
  });
}
