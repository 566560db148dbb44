import { defineFact } from './fact.ts';

/** The service manager of the host: systemd, OpenRC, or null (a container, an image). */
export const initSystem = defineFact(
  {
    systemd: { kind: 'list', path: '/run/systemd/system', lasting: true },
    systemctl: { kind: 'command', argv: ['sh', '-c', 'command -v systemctl'], lasting: true },
    openrc: { kind: 'command', argv: ['sh', '-c', 'command -v rc-service && command -v rc-update'], lasting: true },
  },
  ({ systemd, systemctl, openrc }): 'systemd' | 'openrc' | null =>
    systemd !== null && systemctl.exitCode === 0 ? 'systemd' : openrc.exitCode === 0 ? 'openrc' : null,
);
