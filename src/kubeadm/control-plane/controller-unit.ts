import { renderTemplate, type Templates } from '../../codec/render-template.ts';
import { KUBERNETES_DIR } from '../../kube/well-known.ts';

/** The controller of rollouts as a program on control planes: its unit, its kubeconfig and its directory. */
export const CONTROLLER_SERVICE = 'kubeletadm-controller';
export const CONTROLLER_UNIT = `/etc/systemd/system/${CONTROLLER_SERVICE}.service`;
/** Link created by `systemctl enable`. */
export const CONTROLLER_WANTS_LINK = `/etc/systemd/system/multi-user.target.wants/${CONTROLLER_SERVICE}.service`;
export const CONTROLLER_CONF_NAME = `${CONTROLLER_SERVICE}.conf`;
export const CONTROLLER_CONF = `${KUBERNETES_DIR}/${CONTROLLER_CONF_NAME}`;
/** Not that of the agent: each is removed on its own. */
export const CONTROLLER_DIRECTORY = '/usr/local/lib/kubeletadm-controller';
/** Address of its health endpoints, the default of `controller --listen`. */
export const CONTROLLER_ADDRESS = '127.0.0.1:10247';

/** Each host has a user of its own, so that its rights can be revoked alone. */
const USER_PREFIX = 'kubeletadm:controller:';

/** The user of the controller on the host of a Node. */
export function controllerUser(nodeName: string): string {
  return `${USER_PREFIX}${nodeName}`;
}

/** The Node of a user; null: another user. */
export function nodeOfController(user: string): string | null {
  return user.startsWith(USER_PREFIX) ? user.slice(USER_PREFIX.length) : null;
}

/**
 * The unit of the controller.
 * @param command the program, with its interpreter
 */
export function renderControllerUnit(templates: Templates, command: readonly string[]): string {
  return String(renderTemplate(templates, CONTROLLER_UNIT, { command, kubeconfig: CONTROLLER_CONF, address: CONTROLLER_ADDRESS }));
}
